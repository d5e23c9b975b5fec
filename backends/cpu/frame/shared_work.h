// Work that all tasks of a parallel loop need first: the tasks that start earliest do it, part by part.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace modelflow::cpu {

/// What all tasks of a parallel loop need before they start: the first ones do it, part by part, inside the loop, which
/// saves a loop of its own. A task that finds every part taken waits for those who are at it; these never wait for
/// anybody, so the tasks may run in any order and on any number of threads. A part that throws counts as done: nobody
/// waits for it, and the loop, whose results are lost, throws what it threw.
///
///     SharedWork rows(4);
///     call.parallel(tasks, [&](std::size_t task) { rows.finish([&](std::size_t part) { ... });  ... });
class SharedWork {
 public:
  explicit SharedWork(std::size_t parts) : taken_(parts) {}

  template <class F>
  void finish(F part) {
    if (done_.load(std::memory_order_acquire) == taken_.size()) return;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i].test_and_set(std::memory_order_relaxed)) continue;
      const Done done{done_};
      part(i);
    }
    for (int spins = 0; done_.load(std::memory_order_acquire) < taken_.size(); ++spins) {
      if (spins > 1000) std::this_thread::yield();  // its thread may have lost its core
    }
  }

 private:
  struct Done {
    std::atomic<std::size_t>& count;
    ~Done() { count.fetch_add(1, std::memory_order_release); }
  };
  std::vector<std::atomic_flag> taken_;
  std::atomic<std::size_t> done_{0};
};

}  // namespace modelflow::cpu
