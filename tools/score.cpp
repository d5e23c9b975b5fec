// A figure of merit, computed by a command of the user.
#include "score.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "modelflow/error.h"
#include "modelflow/runtime.h"
#include "terminal.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;
constexpr const char* kPlace = "{}";  // in the command, of the model

/// A folder that goes with its owner.
class Folder {
 public:
  Folder() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "modelflow-score-XXXXXX").string();
    if (error || !mkdtemp(name.data()))
      throw Error(ErrorKind::output, fmt::format("cannot make a folder for temporary files{}",
                                                 error ? ": there is no $TMPDIR" : fmt::format(" '{}'", name)));
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The command with the file for every {}, one word wherever it stands: an open quote ends before it and goes on
/// behind.
std::string filled_in(const std::string& command, const std::string& file) {
  const std::string word = shell_word(file);
  std::string text, quote;  // quote: the one that is open, of a word that needs some
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string c(1, command[i]);
    if (command.compare(i, 2, kPlace) == 0) {
      text += word == file ? file : quote + word + quote;
      ++i;
      continue;
    }
    text += c;
    if (c == "\\" && quote != "'" && i + 1 < command.size()) {
      text += command[++i];
    } else if (c == quote) {
      quote.clear();
    } else if (quote.empty() && (c == "'" || c == "\"")) {
      quote = c;
    }
  }
  return text;
}

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw Error(ErrorKind::usage, fmt::format("--score: cannot run '{}'", command));
  std::string text;
  char part[4096];
  while (const std::size_t read = std::fread(part, 1, sizeof part, pipe)) text.append(part, read);
  const int status = pclose(pipe);
  if (status == 0) return text;
  const std::string how = status == -1        ? "its exit code cannot be known"
                          : WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                              : strsignal(WTERMSIG(status));
  throw Error(ErrorKind::usage, fmt::format("--score: '{}' failed ({})", command, how));
}

double last_number(const std::string& text, const std::string& command) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  const std::string words = last == std::string::npos ? "" : text.substr(0, last + 1);
  const std::string word = words.substr(words.find_last_of(" \t\r\n") + 1);
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0')
    throw Error(ErrorKind::usage, fmt::format("--score: '{}' ends with '{}', which is no number", command, word));
  return number;
}

}  // namespace

std::function<double(const Model&)> score_command(const std::string& command) {
  if (command.find(kPlace) == std::string::npos)
    throw Error(ErrorKind::usage, fmt::format("--score '{}' names no model: say {{}} where its file goes", command));
  return [command](const Model& model) {
    const Folder folder;
    const fs::path file = folder.path() / "model.onnx";
    model.save(file);
    setenv("MODELFLOW_PLUGIN", plugin_path().c_str(), 1);
    const std::string whole = filled_in(command, file.string());
    return last_number(output_of(whole), whole);
  };
}

}  // namespace modelflow::tools
