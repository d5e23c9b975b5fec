// A figure of merit, computed by a command of the user.
#include "score.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "modelflow/error.h"
#include "modelflow/runtime.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;

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

std::string filled_in(std::string command, const std::string& file) {
  for (std::size_t at = command.find("{}"); at != std::string::npos; at = command.find("{}", at + file.size()))
    command.replace(at, 2, file);
  return command;
}

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw Error(ErrorKind::usage, fmt::format("--score: cannot run '{}'", command));
  std::string text;
  char part[4096];
  while (const std::size_t read = std::fread(part, 1, sizeof part, pipe)) text.append(part, read);
  if (const int status = pclose(pipe))
    throw Error(ErrorKind::usage, fmt::format("--score: '{}' failed (status {})", command, status));
  return text;
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
