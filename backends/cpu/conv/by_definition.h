// Convolution of float32 by its definition, for operands that fast kernels cannot take.
#pragma once

#include "backends/activation.h"
#include "backends/ops/conv_attrs.h"

namespace modelflow::cpu {

/// A float32 convolution as its definition says it, one result after the other: for numbers that fast ways cannot take.
struct PlainConv {
  const ops::ConvAttrs& conv;
  const ActivationSpec& activation;
  Dims x_dims, w_dims;  ///< w: plain ONNX
  const float *x = nullptr, *w = nullptr;
  const float* bias = nullptr;      ///< or null
  const float* residual = nullptr;  ///< or null
  const float* slopes = nullptr;    ///< of PRelu
};

void conv_by_definition(const PlainConv& plain, float* y, Invocation& call);

}  // namespace modelflow::cpu
