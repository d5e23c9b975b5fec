// Work that the tasks of a loop share ends for all of them, also where a part of it throws.
#include "backends/cpu/frame/shared_work.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <vector>

namespace modelflow::cpu {
namespace {

TEST(SharedWorkTest, EveryPartIsDoneOnceBeforeAnyTaskGoesOn) {
  constexpr std::size_t kParts = 64, kTasks = 4;
  std::vector<std::atomic<int>> times(kParts);
  SharedWork work(kParts);
  const auto task = [&] {
    work.finish([&](std::size_t part) { ++times[part]; });
    for (const auto& done : times) EXPECT_EQ(done, 1);
  };
  std::vector<std::future<void>> tasks;
  for (std::size_t i = 0; i < kTasks; ++i) tasks.push_back(std::async(std::launch::async, task));
  for (auto& running : tasks) running.get();
}

TEST(SharedWorkTest, NobodyWaitsForAPartThatThrew) {
  SharedWork work(2);
  const auto part = [](std::size_t i) {
    if (i == 0) throw std::runtime_error("no memory");
  };
  EXPECT_THROW(work.finish(part), std::runtime_error);
  auto other = std::async(std::launch::async, [&] { work.finish(part); });
  EXPECT_NO_THROW(other.get());  // waited for ever
}

}  // namespace
}  // namespace modelflow::cpu
