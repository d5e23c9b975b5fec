// Stops a run that takes too much.
#pragma once

#include <chrono>
#include <string_view>

#include "modelflow/limits.h"

namespace modelflow {

/// The limits of time and memory of one run, to be asked between its steps.
class LimitGuard {
 public:
  explicit LimitGuard(const Limits& limits) : limits_(limits), most_memory_(most_memory(limits)) {}
  /// Throws Error(limit) once a limit is passed.
  void check(std::string_view step) const;

 private:
  using Clock = std::chrono::steady_clock;
  Limits limits_;
  double most_memory_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace modelflow
