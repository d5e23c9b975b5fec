// The attributes of QConv, and scale and zero point of a tensor.
#pragma once

#include "backends/call_attrs.h"
#include "backends/ops/conv_attrs.h"

namespace modelflow::ops {

/// A tensor of u8 stands for the numbers (value - zero_point) * scale.
struct Quantization {
  float scale = 1;
  std::int32_t zero_point = 0;
};

/// The attributes `of`_scale and `of`_zero_point. Throws Error(invalid_input) where they mean nothing.
Quantization quantization(const CallAttrs& attrs, const std::string& of);

/// The attributes of one QConv call, read and checked once.
struct QConvAttrs {
  ConvAttrs conv;
  Quantization x, y, residual;

  /// Throws Error(invalid_input) when the attributes contradict each other.
  explicit QConvAttrs(const CallAttrs& attrs);
  static constexpr std::size_t kScale = 2, kBias = 3, kResidual = 4;  ///< positions of these inputs
  std::size_t inputs() const { return kResidual + (conv.residual != Residual::none); }
};

/// Layers of real models, then every option once; weights, scales and bias filled in.
std::vector<Call> qconv_samples();

}  // namespace modelflow::ops
