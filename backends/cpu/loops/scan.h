// The loop of a selective state space model.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// Some channels of one sequence. Rows of u, delta and y are `stride` floats apart, those of b and c `states`.
struct SelectiveSteps {
  std::size_t steps = 0, channels = 0, states = 0, stride = 0;
  std::size_t width = 0;  ///< floats in a row of a and h: at least `channels`, whole vectors on every machine
  const float *u = nullptr, *delta = nullptr, *b = nullptr, *c = nullptr;
  const float* a = nullptr;  ///< [states, width]
  float* h = nullptr;        ///< likewise: the state that the steps begin and end with
  float* y = nullptr;
};

/// Written once in scan_loops.h. What is added to the state is u b, or (delta b) u.
struct ScanLoops {
  void (*selective)(const SelectiveSteps& strip);
  void (*selective_scaled)(const SelectiveSteps& strip);
};

}  // namespace modelflow::cpu
