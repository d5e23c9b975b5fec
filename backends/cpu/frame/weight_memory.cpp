// Memory that lasts for packed weights, many in one huge page.
#include "backends/cpu/frame/weight_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "modelflow/error.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Address space that is taken at once; only what is written takes memory.
constexpr std::size_t kBlock = kWeightsLieAlone ? 0 : 32 * kHugePage;

/// A run of huge pages, filled from its beginning.
class Block {
 public:
  /// Null where there is no memory.
  static std::shared_ptr<Block> make(std::size_t bytes) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kBlock ? kHugePage : 64, bytes) != 0) return nullptr;
    Memory owned(static_cast<std::byte*>(memory), std::free);
    if (kBlock) madvise(memory, bytes, MADV_HUGEPAGE);
    return std::make_shared<Block>(std::move(owned), bytes);
  }

  using Memory = std::unique_ptr<std::byte, decltype(&std::free)>;
  Block(Memory memory, std::size_t size) : memory_(std::move(memory)), size_(size), users_(size / kHugePage + 1) {}

  std::size_t room() const { return size_ - used_; }

  /// The next bytes, up to room().
  std::byte* take(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    std::byte* at = memory_.get() + used_;
    each_page(used_, bytes, [&](std::size_t page) { ++users_[page]; });
    used_ += bytes;
    return at;
  }

  void give_back(const std::byte* at, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    each_page(static_cast<std::size_t>(at - memory_.get()), bytes, [&](std::size_t page) {
      // What lies behind the part that is used belongs to weights that come later.
      if (--users_[page] == 0 && (page + 1) * kHugePage <= used_)
        madvise(memory_.get() + page * kHugePage, kHugePage, MADV_DONTNEED);
    });
  }

 private:
  template <class F>
  static void each_page(std::size_t begin, std::size_t bytes, F f) {
    for (std::size_t page = begin / kHugePage; page * kHugePage < begin + bytes; ++page) f(page);
  }

  std::mutex mutex_;
  Memory memory_;
  std::size_t size_, used_ = 0;
  std::vector<std::size_t> users_;  // of each page
};

/// The block that is being filled.
struct Open {
  std::mutex mutex;
  std::weak_ptr<Block> block;
};

// Leaked on purpose: kernels may be destroyed after static destructors ran.
Open& open() {
  static Open* instance = new Open;
  return *instance;
}

std::shared_ptr<Block> block_for(std::size_t bytes) {
  const std::size_t whole = kBlock ? (bytes + kHugePage - 1) / kHugePage * kHugePage : bytes;
  if (bytes <= kBlock / 2)
    if (std::shared_ptr<Block> block = Block::make(kBlock)) return block;
  if (std::shared_ptr<Block> block = Block::make(whole)) return block;
  throw Error(ErrorKind::limit, "no memory for " + std::to_string(bytes) + " bytes of packed weights");
}

}  // namespace

std::shared_ptr<std::byte> weight_memory(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>((bytes + 63) / 64 * 64, 64);
  std::lock_guard lock(open().mutex);
  std::shared_ptr<Block> block = open().block.lock();
  if (!block || block->room() < size) {
    const std::shared_ptr<Block> other = block_for(size);
    if (!block || block->room() < other->room() - size) open().block = other;
    block = other;
  }
  std::byte* at = block->take(size);
  return {at, [block, size](std::byte* p) { block->give_back(p, size); }};
}

}  // namespace modelflow::cpu
