// Where symbolic links of a file to be written lead.
#include <linux/magic.h>
#include <sys/vfs.h>

#include "modelflow/error.h"
#include "src/core/new_file.h"
#include "src/onnx/file.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

constexpr int kMostLinks = 40;  // as the kernel has it

/// What looks like a link in /proc/self/fd is an open file, which nothing may take the place of.
bool is_in_proc(const fs::path& file) {
  struct statfs where {};
  return ::statfs(directory_of(file).c_str(), &where) == 0 && where.f_type == PROC_SUPER_MAGIC;
}

}  // namespace

fs::path end_of_links(const fs::path& file) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorKind::output, "'" + file.string() + "' " + why); };
  fs::path at = file;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(at, error);
    if (is_in_proc(at) || (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_symlink(status)))
      refuse("exists and is not a regular file");
    if (!fs::is_symlink(status)) return at;
    const fs::path next = fs::read_symlink(at, error);
    if (error) refuse("is a link that cannot be read: " + error.message());
    at = next.is_absolute() ? next : directory_of(at) / next;
  }
  refuse("is a link in a circle");
  return at;
}

}  // namespace modelflow
