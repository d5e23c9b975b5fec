// A call of Conv in numbers: geometry and operands, which calls the kernels take, and its work.
#pragma once

#include <cstdint>
#include <span>

#include "backends/activation.h"
#include "backends/ops/conv_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Static, because files compiled for AVX-512 include this too, and the linker might keep their copy for all.
static inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The extents of one run of a convolution over up to three spatial axes (one is seen as an image of one row; those
/// that windows do not look along are joined with others): numbers only, so that files compiled for AVX-512 need
/// nothing of the standard library.
struct ConvGeometry {
  std::int64_t batch, channels, height, width;  // x
  std::int64_t filters, rows, columns;          // y
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  bool x_last, y_last;
  /// Along the first of three axes: planes of x and of y, taps, padding in front. Stride and dilation are 1 there.
  std::int64_t depth = 1, planes = 1, kernel_d = 1, front = 0;
};

/// Throws Error(invalid_input) when x does not fit attributes and weights (plain ONNX dims).
ConvGeometry conv_geometry(const ops::ConvAttrs& conv, const Dims& weights, std::span<const std::int64_t> x);

/// One run of a float32 convolution.
struct ConvProblem : ConvGeometry {
  const float* x;
  const float* bias;   // 64 numbers from each filter on, zeros behind the last
  const float* added;  // the residual, in the layout of y; null when there is none
  float* y;
  ops::Residual residual;
  ActivationSpec activation;
  const float* slopes;                 // of PRelu, as many as there is bias; else null
  const float *pre_scale, *pre_shift;  // one for each channel of x, which goes through Relu then; else null
};

/// One run of a convolution that multiplies bfloat16: its operands are that or float32, each for itself.
struct ConvBf16Problem : ConvGeometry {
  View x, added;  // `added` without data when there is no residual
  const float* bias;
  void* y;
  ops::Residual residual;
  ActivationSpec activation;
};

/// Output rows [row0, row1) x columns [column0, column1) of one image: what one task computes.
struct ConvBlock {
  std::int64_t image, row0, row1, column0, column1;
  std::int64_t rows() const { return row1 - row0; }
  std::int64_t columns() const { return column1 - column0; }
};

/// What the node says of it (attributes, weights), read once.
struct ConvNode {
  ops::ConvAttrs conv;
  ActivationSpec activation;
  Dims weights;  ///< plain ONNX dims

  explicit ConvNode(const Call& call);
  /// Checks the operands, allocates y and fills everything in. Throws Error(invalid_input).
  ConvProblem problem(Invocation& call) const;
  /// The same where operands are bfloat16 or float32.
  ConvBf16Problem bf16_problem(Invocation& call) const { return operands(call, true); }

 private:
  ConvBf16Problem operands(Invocation& call, bool may_be_bf16) const;
};

/// What every convolution kernel asks for: float32, constant weights of known dims, at most `max_axes` spatial axes,
/// joined ones counted once. Few activate x first (`may_pre`).
Verdict accepts_conv(const Call& call, std::size_t max_axes, bool may_pre = false);
/// The same with weights in bfloat16; x and the residual are that or float32.
Verdict accepts_conv_bf16(const Call& call, std::size_t max_axes);
/// The part of it that is the same for all element types.
Verdict accepts_weights(const ops::ConvAttrs& conv, const Operand& w, std::size_t max_axes);
/// How many tasks work that is worth so many of them is cut into: several for each thread at most, and one alone below
/// `least`.
std::int64_t conv_tasks(double worth, std::int64_t threads, double least = 1);
/// Bytes of all operands, float32 where no type is known.
double conv_bytes(const Call& call);

}  // namespace modelflow::cpu
