// Scratch memory for the tasks of a loop: as many slots as threads can use at a time, and each task takes a free one.
#include "backends/cpu/frame/scratch_tasks.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace modelflow::cpu {
namespace {

class Slots {
 public:
  Slots(Invocation& call, std::size_t tasks, std::size_t bytes)
      : count_(std::min<std::size_t>({tasks, call.threads() + 1, 64})), bytes_((bytes + 127) / 64 * 64) {
    memory_ = call.scratch(count_ * bytes_);
  }

  std::size_t take() {
    while (true) {
      const std::uint64_t seen = taken_.load();
      std::size_t slot = 0;
      while (slot < count_ && (seen >> slot & 1)) ++slot;
      // More tasks at once than slots: the runtime has more threads than it told.
      if (slot == count_)
        std::this_thread::yield();
      else if ((taken_.fetch_or(std::uint64_t{1} << slot) >> slot & 1) == 0)
        return slot;
    }
  }
  std::byte* memory(std::size_t slot) const { return memory_ + slot * bytes_; }
  void give_back(std::size_t slot) { taken_.fetch_and(~(std::uint64_t{1} << slot)); }

 private:
  std::size_t count_, bytes_;
  std::byte* memory_;
  std::atomic<std::uint64_t> taken_ = 0;  // bits
};

}  // namespace

void run_with_scratch(Invocation& call, std::int64_t tasks, std::size_t bytes,
                      const std::function<void(std::int64_t, std::byte*)>& body) {
  const auto count = static_cast<std::size_t>(tasks);
  if (count == 1) return body(0, call.scratch(bytes));
  Slots slots(call, count, bytes);
  call.parallel(count, [&](std::size_t task) {
    const std::size_t slot = slots.take();
    body(static_cast<std::int64_t>(task), slots.memory(slot));
    slots.give_back(slot);
  });
}

}  // namespace modelflow::cpu
