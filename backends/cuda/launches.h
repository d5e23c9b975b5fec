// What goes from the host to kernels of a GPU: plain structures, read by nvcc, by the emulator and by the host.
#pragma once

#include <cstdint>

namespace modelflow::cuda {

/// Type of the elements, one for all floats of a launch; kernels compute in float32. u8: steps of 8 bits, for the few
/// that take these.
enum class Number : std::uint32_t { f32, f16, bf16, u8 };

/// An 8-bit number q stands for (q - zero_point) * scale.
struct Steps {
  float scale = 1;
  std::int32_t zero_point = 0;
};

/// Where in each operand the element lies that belongs to an element of the result: merged axes, outermost first, and
/// a stride for each operand, 0 where it repeats.
struct Places {
  static constexpr int kAxes = 8, kOperands = 8;
  std::int32_t axes = 0;
  std::int64_t extents[kAxes] = {};
  std::int64_t strides[kOperands][kAxes] = {};
  bool whole[kOperands] = {};   ///< every element has one of its own, at the same place
  bool single[kOperands] = {};  ///< one element for all
};

/// y = (x + residual normalized over its last n elements) * scale + bias, and the sum; `after`: the residual is added
/// to what is normalized.
struct LayerNormLaunch {
  Number number;
  bool after;
  std::int64_t rows, n;
  const void *x, *residual, *scale, *bias;  ///< residual and bias may be null; null bias: RMS normalization
  void *y, *sum;                            ///< sum may be null
  Places places;                            ///< of x and the residual
  float epsilon;
};

}  // namespace modelflow::cuda
