// Loaded in front of the C library (LD_PRELOAD): memory that nobody has written holds NaN, so that a kernel which reads
// such memory, be it times 0, gives another result than the function body. glibc alone.
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT(bugprone-reserved-identifier)
}

namespace {

/// All bits set: NaN in float32, float16 and bfloat16, -1 in integers.
void* poisoned(void* memory, std::size_t size) { return memory ? std::memset(memory, 0xff, size) : nullptr; }

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept { return poisoned(__libc_malloc(size), size); }

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return poisoned(__libc_memalign(alignment, size), size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) noexcept {
  *memory = poisoned(__libc_memalign(alignment, size), size);
  return *memory ? 0 : ENOMEM;
}
}
