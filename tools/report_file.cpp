#include "report_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "modelflow/error.h"

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;

/// Those of the file that is replaced, else what any new file gets.
mode_t permissions_of(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) == 0) return info.st_mode & 07777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

ReportFile::Temporary::~Temporary() {
  std::error_code ignored;
  if (!path.empty()) fs::remove(path, ignored);
}

ReportFile::ReportFile(fs::path file, std::string text) : file_(std::move(file)), text_(std::move(text)) {
  std::error_code ignored;
  const fs::file_status status = fs::status(file_, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  std::string name = (file_.parent_path() / ("." + file_.filename().string() + ".XXXXXX")).string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) fail(std::strerror(errno));
  temporary_.path = name;
  (void)!::fchmod(descriptor, permissions_of(file_));
  ::close(descriptor);
  write(temporary_.path);
}

void ReportFile::write(const fs::path& path) const {
  std::ofstream out(path);
  out << text_ << '\n';
  out.close();
  if (!out) fail(std::strerror(errno));
}

void ReportFile::replace() {
  if (temporary_.path.empty()) return write(file_);
  std::error_code error;
  fs::rename(temporary_.path, file_, error);
  if (error) fail(error.message());
  temporary_.path.clear();
}

void ReportFile::fail(const std::string& why) const {
  throw Error(ErrorKind::output, fmt::format("cannot write the report to '{}': {}", file_.string(), why));
}

}  // namespace modelflow::tools
