// Loops of resizing: what lies between the numbers of a line, and between lines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelflow::cpu {

/// What the extents of an axis are made of: number p of the result is the sum over t of weight(t, p) * x[index(t, p)].
/// Lists of one tap after the other, each `stride` long, which is kPadding more than there are numbers at least.
struct Taps {
  std::size_t count = 0, stride = 0;
  std::int32_t* index = nullptr;
  float* weight = nullptr;
  static constexpr std::size_t kPadding = 16;
};

/// Written once in resize_loops.h.
struct ResizeLoops {
  /// y[(p - first) * channels + c] for the pixels first <= p < end of a line, from those of x.
  void (*across)(const float* x, const Taps& taps, std::size_t first, std::size_t end, std::size_t channels, float* y);
  /// y[i] = sum over t of weight[t] * lines[t][i]; 2 or 4 lines.
  void (*between)(const float* const* lines, const float* weight, std::size_t count, std::size_t n, float* y);
};

}  // namespace modelflow::cpu
