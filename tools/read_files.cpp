// Files that are read, told apart from those that are written whatever they are called.
#include "read_files.h"

#include <fmt/format.h>

#include <set>

#include "modelflow/error.h"
#include "src/core/data_files.h"
#include "src/core/new_file.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;

/// The name behind all links; of a file that is not there yet, where it would be, and as it is where that is no name.
fs::path real_name(const fs::path& file) {
  std::error_code error;
  const fs::path absolute = fs::absolute(end_of_links(file), error);
  const fs::path real = fs::weakly_canonical(absolute, error);
  return error ? absolute : real;
}

/// Hard links have two names that are both real.
bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) || real_name(a) == real_name(b);
}

/// FILE.data and FILE.data.N, where saving puts the weights of FILE.
bool is_data_of(const fs::path& file, const fs::path& model) {
  const std::string name = real_name(file).string(), stem = real_name(model).string() + ".data";
  if (!name.starts_with(stem)) return false;
  const std::string rest = name.substr(stem.size());
  return rest.empty() || (rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == std::string::npos);
}

std::vector<fs::path> files_of(const fs::path& data) {
  std::error_code error;
  if (!fs::is_directory(data, error)) return {data};
  std::vector<fs::path> files;
  for (fs::directory_iterator at(data, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".npz") files.push_back(at->path());
  return files;
}

[[noreturn]] void refuse(const fs::path& file, std::string_view option, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("{} '{}' {}", option, file.string(), why));
}

}  // namespace

void refuse_to_replace_data(const fs::path& output, std::string_view option, const ReadFiles& read) {
  refuse_data_files(output, option, read.models);
  std::error_code error;
  for (const fs::path& data : read.data)
    for (const fs::path& file : files_of(data))
      if (fs::equivalent(output, file, error))
        refuse(output, option, fmt::format("would take the place of '{}', which is read", file.string()));
}

void refuse_to_replace(const fs::path& report, std::string_view option, const ReadFiles& read,
                       const std::vector<fs::path>& written) {
  if (report.empty()) return;
  refuse_to_replace_data(report, option, read);
  std::vector<fs::path> others = written;
  std::error_code error;
  for (const fs::path& model : read.models)
    if (fs::is_regular_file(model, error)) others.push_back(model);
  for (const fs::path& other : others) {
    if (other.empty()) continue;
    if (same_file(report, other)) refuse(report, option, fmt::format("would take the place of '{}'", other.string()));
    if (is_data_of(report, other)) refuse(report, option, fmt::format("is where weights of '{}' lie", other.string()));
  }
  static const std::set<fs::path> inputs = {".onnx", ".npz", ".so"};
  if (inputs.contains(report.extension()))
    refuse(report, option, "is named as a model, data or a library: give it a name such as report.html or report.json");
}

}  // namespace modelflow::tools
