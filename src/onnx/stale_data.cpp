// Which data files of a model that was replaced can go.
#include "src/onnx/stale_data.h"

#include <algorithm>
#include <fstream>

#include "src/core/data_files.h"
#include "src/onnx/file.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

/// FILE.data or FILE.data.N.
bool is_data_of(const std::string& name, const fs::path& file) {
  const std::string stem = file.filename().string() + ".data";
  if (!name.starts_with(stem)) return false;
  const std::string rest = name.substr(stem.size());
  return rest.empty() ||
         (rest[0] == '.' && rest.size() > 1 && rest.find_first_not_of("0123456789", 1) == std::string::npos);
}

bool is_mapped_here(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  std::ifstream maps("/proc/self/maps");
  if (error || !maps) return true;  // unknown: as if it were
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with(" " + real.string())) return true;
  return false;
}

/// Models of one folder may share their weights, whatever their names end in.
bool is_named_beside(const fs::path& data, const fs::path& file) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_of(file), error)) {
    if (entry.path().filename() == file.filename()) continue;
    const std::vector<fs::path> named = data_files_of(entry.path());
    if (std::ranges::any_of(named, [&](const fs::path& other) { return fs::equivalent(other, data, error); }))
      return true;
  }
  return false;
}

}  // namespace

StaleData::StaleData(const fs::path& file) : file_(file) {
  std::error_code error;
  for (const fs::path& data : data_files_of(file))
    if (fs::equivalent(directory_of(data), directory_of(file), error) && is_data_of(data.filename().string(), file) &&
        fs::is_regular_file(fs::symlink_status(data, error)))
      found_.push_back(data);
}

void StaleData::remove(const fs::path& current, const fs::path& named_in) const {
  std::error_code ignored;
  for (const fs::path& data : found_) {
    if (data.filename() == current.filename() || is_mapped_here(data) || is_named_beside(data, file_)) continue;
    const fs::path link = named_in / data.filename();
    if (fs::is_symlink(link, ignored) && fs::equivalent(link, data, ignored)) fs::remove(link, ignored);
    fs::remove(data, ignored);
  }
}

}  // namespace modelflow
