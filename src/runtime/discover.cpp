// The folders that may hold an ONNX Runtime.
#include "src/runtime/discover.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

namespace modelflow {
namespace fs = std::filesystem;
namespace {

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// The capi folders under PREFIX/lib/python3*/{site,dist}-packages.
void add_prefix(const fs::path& prefix, std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const char* lib : {"lib", "lib64"})
    for (const fs::directory_entry& entry : fs::directory_iterator(prefix / lib, ignored)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        folders.push_back(entry.path() / packages / "onnxruntime" / "capi");
    }
}

std::vector<fs::path> package_folders() {
  std::vector<fs::path> folders;
  if (const std::string venv = env("VIRTUAL_ENV"); !venv.empty()) add_prefix(venv, folders);
  std::istringstream path(env("PATH"));
  std::error_code ignored;
  for (std::string bin; std::getline(path, bin, ':');)  // not resolved: a venv's python3 is a link out of it
    if (!bin.empty() && fs::exists(fs::path(bin) / "python3", ignored))
      add_prefix(fs::path(bin).parent_path(), folders);
  if (const std::string home = env("HOME"); !home.empty()) add_prefix(fs::path(home) / ".local", folders);
  add_prefix("/usr/local", folders);
  add_prefix("/usr", folders);
  return folders;
}

}  // namespace

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("libonnxruntime.so")) found.push_back(entry.path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<fs::path> python_libraries() {
  std::vector<fs::path> found;
  for (const fs::path& folder : package_folders())
    for (fs::path& library : libraries_in(folder))
      if (std::find(found.begin(), found.end(), library) == found.end()) found.push_back(std::move(library));
#ifdef MODELFLOW_ONNXRUNTIME_HERE  // the one that the build found: good for commands run from the build folder
  found.emplace_back(MODELFLOW_ONNXRUNTIME_HERE);
#endif
  return found;
}

}  // namespace modelflow
