// Finds out from /proc whether memory is a private mapping of a file, and gives it back to the system.
#include "backends/cpu/frame/mapped_weights.h"

#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace modelflow::cpu {
namespace {

constexpr std::uintptr_t kPage = 4096;

/// True when one private mapping of a file holds the whole range (proc(5), /proc/pid/maps). Anonymous memory must not
/// be taken for one: giving that back would clear it.
bool in_private_file_mapping(std::uintptr_t begin, std::uintptr_t end) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (!maps) return false;
  char line[512];
  while (std::fgets(line, sizeof line, maps.get())) {
    std::uintptr_t from = 0, to = 0;
    char permissions[5] = {};
    unsigned long inode = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %lu", &from, &to, permissions, &inode) != 4) continue;
    if (begin >= from && begin < to) return end <= to && inode != 0 && permissions[3] == 'p';
  }
  return false;
}

}  // namespace

void release_mapped(const void* data, std::size_t bytes) {
  constexpr std::size_t kWorthIt = 256 << 10;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  // Whole pages only, so that neighbours in the file stay.
  const std::uintptr_t begin = (address + kPage - 1) / kPage * kPage, end = (address + bytes) / kPage * kPage;
  if (bytes < kWorthIt || end <= begin || !in_private_file_mapping(begin, end)) return;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace modelflow::cpu
