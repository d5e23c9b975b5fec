// What goes from the host to kernels of a GPU: plain structures, read by nvcc, by the emulator and by the host.
#pragma once

#include <cstdint>

#include "backends/activation.h"

namespace modelflow::cuda {

/// Type of the elements, one for all floats of a launch; kernels compute in float32.
enum class Number : std::uint32_t { f32, f16, bf16 };

/// Where in each operand the element lies that belongs to an element of the result: merged axes, outermost first, and
/// a stride for each operand, 0 where it repeats.
struct Places {
  static constexpr int kAxes = 8, kOperands = 8;
  std::int32_t axes = 0;
  std::int64_t extents[kAxes] = {};
  std::int64_t strides[kOperands][kAxes] = {};
  bool whole[kOperands] = {};  ///< every element has one of its own, at the same place
};

/// y = (x + residual normalized over its last n elements) * scale + bias, and the sum.
struct LayerNormLaunch {
  Number number;
  std::int64_t rows, n;
  const void *x, *residual, *scale, *bias;  ///< residual and bias may be null; null bias: RMS normalization
  void *y, *sum;                            ///< sum may be null
  Places places;                            ///< of x and the residual
  float epsilon;
};

/// activation(sum * scale + bias, the residual before) and the residual after it.
struct EpilogueLaunch {
  enum class Residual : std::int32_t { none, before, after, times };
  const void *bias, *residual;  ///< null where there is none
  Residual use;
  float scale;
  ActivationSpec activation;
};

/// y = epilogue(a b): products of [m, k] and [k, n], either of which may lie transposed, on tensor cores or not.
struct MatMulLaunch {
  Number number;
  std::int64_t m, n, k, products;
  const void *a, *b;
  void* y;
  bool trans_a, trans_b;
  bool tensor_cores, large;     ///< in tiles of 128 x 128, where there are enough of them for all multiprocessors
  bool wide_a, wide_b, wide_y;  ///< may be moved 16 bytes at a time; the launcher sets them
  Places batches;               ///< of the matrices of a and b, by product
  EpilogueLaunch epilogue;
};

}  // namespace modelflow::cuda
