#pragma once

#include <cstdint>
#include <span>

#include "backends/cpu/activation.h"
#include "backends/ops/conv_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Static: files compiled for AVX-512 include this too, and one copy for all of them could be theirs.
static inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The extents of one run of a convolution over one or two spatial axes (one is seen as an image of one row): numbers
/// only, so that files compiled for AVX-512 need nothing of the standard library.
struct ConvGeometry {
  std::int64_t batch, channels, height, width;  // x
  std::int64_t filters, rows, columns;          // y
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  bool x_last, y_last;
};

/// Throws Error(invalid_input) when x does not fit attributes and weights (plain ONNX dims).
ConvGeometry conv_geometry(const ops::ConvAttrs& conv, const Dims& weights, std::span<const std::int64_t> x);

/// One run of a float32 convolution.
struct ConvProblem : ConvGeometry {
  const float* x;
  const float* bias;   // filters rounded up to 64, zeros behind
  const float* added;  // the residual, in the layout of y; null when there is none
  float* y;
  ops::Residual residual;
  ActivationSpec activation;
};

/// Output rows [row0, row1) x columns [column0, column1) of one image: what one task computes.
struct ConvBlock {
  std::int64_t image, row0, row1, column0, column1;
  std::int64_t rows() const { return row1 - row0; }
  std::int64_t columns() const { return column1 - column0; }
};

/// The node's side of it, read once.
struct ConvNode {
  ops::ConvAttrs conv;
  ActivationSpec activation;
  Dims weights;  ///< plain ONNX dims

  explicit ConvNode(const Call& call);
  /// Checks the operands, allocates y and fills everything in. Throws Error(invalid_input).
  ConvProblem problem(Invocation& call) const;
};

/// What every convolution kernel asks for: float32 (weights may be given another type), constant weights of known dims,
/// at most `max_rank` spatial axes.
Verdict accepts_conv(const Call& call, std::size_t max_rank, DType weights = DType::f32);
/// The part of it that is the same for all element types.
Verdict accepts_weights(const ops::ConvAttrs& conv, const Operand& w, std::size_t max_rank);
/// Multiplications and additions; unknown dims count as one.
double conv_flops(const Call& call);
/// Bytes of all operands.
double conv_bytes(const Call& call);

}  // namespace modelflow::cpu
