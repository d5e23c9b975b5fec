// An arena: one block of memory from which pieces are handed out one after the other.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// Hands out pieces of a block of memory, whole lines of 64 bytes each; of no block: only counts.
class Arena {
 public:
  explicit Arena(float* block) : block_(reinterpret_cast<std::byte*>(block)) {}

  template <class T>
  T* take(std::size_t count) {
    const std::size_t at = used_;
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return block_ ? reinterpret_cast<T*>(block_ + at) : nullptr;
  }
  std::size_t floats() const { return used_ / sizeof(float); }

 private:
  std::byte* block_;
  std::size_t used_ = 0;
};

}  // namespace modelflow::cpu
