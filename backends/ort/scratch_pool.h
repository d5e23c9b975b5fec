// Scratch memory that stays between Compute calls.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace modelflow::ort {

/// Scratch memory that stays between Compute calls: what the runtime's allocator (or malloc) gives for a large block
/// comes as fresh pages, and their first touch costs more than many a kernel. Shared by all nodes; thread-safe.
class ScratchPool {
 public:
  struct Block {
    std::unique_ptr<std::byte, void (*)(void*)> bytes;
    std::size_t size;
  };

  /// A 64-byte aligned block of at least `size` bytes; bytes is null when there is no memory.
  Block take(std::size_t size) {
    {
      std::lock_guard lock(mutex_);
      std::size_t best = free_.size();
      for (std::size_t i = 0; i < free_.size(); ++i) {
        if (free_[i].size >= size && (best == free_.size() || free_[i].size < free_[best].size)) best = i;
      }
      if (best != free_.size()) {
        Block block = std::move(free_[best]);
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(best));
        kept_ -= block.size;
        return block;
      }
    }
    const std::size_t rounded = (size + kStep - 1) / kStep * kStep + (size == 0 ? kStep : 0);
    return {{static_cast<std::byte*>(std::aligned_alloc(64, rounded)), std::free}, rounded};
  }

  void give_back(Block block) {
    std::lock_guard lock(mutex_);
    kept_ += block.size;
    free_.push_back(std::move(block));
    while (kept_ > kMost) {  // the oldest first
      kept_ -= free_.front().size;
      free_.erase(free_.begin());
    }
  }

 private:
  static constexpr std::size_t kStep = 4096, kMost = 64 << 20;
  std::mutex mutex_;
  std::vector<Block> free_;
  std::size_t kept_ = 0;
};

}  // namespace modelflow::ort
