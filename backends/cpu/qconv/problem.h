// A call of QConv in numbers: operands and scales, which calls the kernels take, and its cost.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/conv/problem.h"
#include "backends/ops/qconv_attrs.h"

namespace modelflow::cpu {

/// What happens to the sums of 8-bit products: numbers only, for files compiled for AVX-512.
struct QEpilogue {
  ActivationSpec activation;
  ops::Residual residual;
  ops::Quantization y, added;
  /// Whether the activation bounds the result and does nothing else; then results are bounded after the rounding.
  bool bounded() const {
    const bool alone = !activation.affine() && residual != ops::Residual::after;
    const bool bound = activation.kind == Activation::relu || activation.kind == Activation::clip;
    return activation.kind == Activation::none || (alone && bound);
  }
};

/// What a result is at least and at most: more than 0 to 255 where the activation is a bound.
struct QBounds {
  std::uint8_t low = 0, high = 255;
};
QBounds bounds_of(const QEpilogue& e);

/// The operands of one run, checked, with y allocated.
struct QConvOperands {
  std::span<const std::int64_t> x_dims;
  const std::uint8_t* x;
  const std::int8_t* w;
  const float* w_scale;
  const std::int32_t* bias;
  const std::uint8_t* added;  ///< the residual, in the layout of y; null when there is none
  Dims y_dims;
  std::uint8_t* y;
};

/// What the node says of it (attributes, weights), read once.
struct QConvNode {
  ops::QConvAttrs attrs;
  QEpilogue epilogue;

  explicit QConvNode(const Call& call);
  /// Throws Error(invalid_input) when a shape or type does not fit.
  QConvOperands operands(Invocation& call) const;
};

/// Throws Error(limit) for images whose rows or extents do not fit 31 bits, in which the vector kernels count.
void expect_extents_of_31_bits(const ConvGeometry& g);

/// What the vector kernels begin a sum with and multiply it with, for each filter.
struct QScales {
  std::vector<std::int32_t> begin;  ///< bias, and what the zero point of x contributes
  std::vector<float> scale;         ///< from sums to real numbers, or to steps of y where the activation is a bound

  QScales(const Call& call, const QConvNode& node);
};

/// Types, attributes and number of operands.
Verdict accepts_qconv(const Call& call, const Target&);
/// What the vector kernels ask for besides: constant weights, scales and bias, as many spatial axes, and scales for
/// which no sum leaves the range of 32 bits when it is divided by the scale of y.
Verdict accepts_qconv_vectors(const Call& call, const Target&, std::size_t max_rank = 2);
/// Besides: one filter for each channel, and channels last on both sides.
Verdict accepts_qconv_depthwise(const Call& call, const Target&);
/// Seconds at `share` of the peak of 8-bit products, which is four times that of float32.
double qconv_cost(const Call& call, const Target& target, double share);

}  // namespace modelflow::cpu
