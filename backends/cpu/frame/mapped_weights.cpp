// Finds out from /proc which pages of memory hold nothing but what a file has, and gives these back to the system.
#include "backends/cpu/frame/mapped_weights.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace modelflow::cpu {
namespace {

constexpr std::uintptr_t kPage = 4096;

/// What the kernel says about each of these pages (Documentation/admin-guide/mm/pagemap.rst); nothing where it does not
/// say.
std::vector<std::uint64_t> pagemap(std::uintptr_t first, std::size_t pages) {
  const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::vector<std::uint64_t> entries(pages);
  const std::size_t bytes = pages * sizeof(std::uint64_t);
  const ssize_t got = pread(file, entries.data(), bytes, static_cast<off_t>(first * sizeof(std::uint64_t)));
  close(file);
  if (got != static_cast<ssize_t>(bytes)) return {};
  return entries;
}

/// True for a page that is here and belongs to a file. A private mapping's page that was written is anonymous memory,
/// like any other of the process: giving that back would lose what was written.
bool in_file(std::uint64_t entry) {
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63, kSwapped = std::uint64_t{1} << 62,
                          kOfFile = std::uint64_t{1} << 61;
  return (entry & (kPresent | kSwapped | kOfFile)) == (kPresent | kOfFile);
}

}  // namespace

void release_mapped(const void* data, std::size_t bytes) {
  constexpr std::size_t kWorthIt = 256 << 10;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  // Whole pages only, so that neighbours in the file stay.
  const std::uintptr_t first = (address + kPage - 1) / kPage, last = (address + bytes) / kPage;
  if (bytes < kWorthIt || last <= first) return;
  const std::vector<std::uint64_t> entries = pagemap(first, last - first);
  for (std::size_t from = 0, to = 0; from < entries.size(); from = to + 1) {
    for (to = from; to < entries.size() && in_file(entries[to]);) ++to;
    if (to > from) madvise(reinterpret_cast<void*>((first + from) * kPage), (to - from) * kPage, MADV_DONTNEED);
  }
}

}  // namespace modelflow::cpu
