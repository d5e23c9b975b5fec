// A zip archive of arrays, as calibration samples come.
#include <sys/mman.h>
#include <unistd.h>

#include "src/data/npy.h"
#include "src/data/zip.h"
#include "tests/fuzz_targets/expected.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {
namespace {

constexpr std::uint64_t kMost = 64 << 20;  // bytes that a member says it has: more is no error, only slow

/// A file without a place on any disk.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : fd_(memfd_create("archive", MFD_CLOEXEC)) {
    const bool whole = ::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    holds(whole, "no memory for a file");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  std::string name() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace

void archive(Bytes bytes) {
  const MemoryFile file(bytes);
  taken([&] {
    const ZipArchive archive(file.name());
    for (const ZipArchive::Member& member : archive.members())
      if (member.bytes < kMost) taken([&] { (void)parse_npy(archive.read(member)); });
  });
  taken([&] { (void)parse_npy({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); });
}

}  // namespace modelflow::fuzz
