// A call of QConvTranspose or QConvTransposeFloat in numbers: attributes, operands, which calls the kernels take, and
// its cost.
#pragma once

#include "backends/activation.h"
#include "backends/ops/qconv_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// The attributes of a QConvTranspose or QConvTransposeFloat node, read once.
struct QConvTransposeNode {
  explicit QConvTransposeNode(const Call& call);

  bool last;    ///< channels of x and y
  bool floats;  ///< what y holds
  ops::Quantization x, y;
  ActivationSpec activation;
  Ints strides;
};

/// One run of it in numbers, y allocated. One spatial axis is seen as an image of one row.
struct QConvTransposeRun {
  /// Throws Error(invalid_input) when a shape or type does not fit.
  QConvTransposeRun(const QConvTransposeNode& node, Invocation& call);

  std::size_t batch, height, width, channels, filters, kernel_h, kernel_w;
  const std::uint8_t* x;
  const std::int8_t* w;  ///< [channels, filters, kernel_h, kernel_w]
  const float* w_scale;
  const std::int32_t* bias;
  void* y;
};

/// Number of operands, types, and one or two spatial axes.
Verdict accepts_qconv_transpose(const Call& call, const Target&);
/// Seconds at `share` of the peak of 8-bit products.
double qconv_transpose_cost(const Call& call, const Target& target, double share);

}  // namespace modelflow::cpu
