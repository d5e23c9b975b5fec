// Limits of time and memory, looked at between steps.
#include "src/limit_guard.h"

#include <fmt/format.h>

#include "modelflow/error.h"

namespace modelflow {

void LimitGuard::check(std::string_view step) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto stop = [&](const std::string& why) {
    throw Error(ErrorKind::limit, fmt::format("{} at the step '{}'", why, step));
  };
  if (limits_.timeout > 0 && seconds > limits_.timeout)
    stop(fmt::format("not done within the {:g} s of the time limit (timeout)", limits_.timeout));
  const double bytes = memory_of();
  if (most_memory_ > 0 && bytes > most_memory_)
    stop(fmt::format("{:.0f} MiB of memory, the limit is {:.0f} MiB (max_memory)", bytes / (1 << 20),
                     most_memory_ / (1 << 20)));
}

}  // namespace modelflow
