// Loops of rotary position embedding: pairs of numbers are rotated by angles.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// One row of one head: pairs (a, b) become (a cos - b sin, b cos + a sin).
struct RotaryRow {
  std::size_t pairs = 0;
  const float *x = nullptr, *cos = nullptr, *sin = nullptr;
  float* y = nullptr;  ///< may be x
};

/// Written once in rotary_loops.h. In the wide forms cos and sin have a number
/// for each element, and those of a pair may differ.
struct RotaryLoops {
  void (*halves)(const RotaryRow& row);
  void (*halves_wide)(const RotaryRow& row);
  void (*neighbours)(const RotaryRow& row);
  void (*neighbours_wide)(const RotaryRow& row);
};

}  // namespace modelflow::cpu
