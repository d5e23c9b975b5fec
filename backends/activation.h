// The activation of a fused op as data: which function, its parameters, and the scale and shift behind it.
#pragma once

#include "backends/call_attrs.h"

namespace modelflow {

enum class Activation {
  none,
  relu,
  squared_relu,
  clip,
  leaky_relu,
  bounded_leaky_relu,
  sigmoid,
  silu,
  hard_swish,
  hard_sigmoid,
  gelu,
  gelu_tanh,
  quick_gelu,
  mish,
  tanh,
  elu,
  softplus,
  prelu
};

/// The activation of a fused op: attributes activation, alpha, beta; its result times `scale` plus `shift` (attributes
/// post_scale, post_shift; PP-OCR has such numbers behind every activation). prelu is leaky_relu with a slope for each
/// channel in place of alpha, which an op that takes it has as an input.
struct ActivationSpec {
  Activation kind = Activation::none;
  float alpha = 0, beta = 0;
  float scale = 1, shift = 0;
  bool affine() const { return scale != 1 || shift != 0; }
};

/// Throw Error(unsupported) for a name that is not in ops::activation_names().
Activation activation_named(std::string_view text);
ActivationSpec activation_of(const CallAttrs& attrs);

/// The meaning, one number at a time: for plain code and for tests. Vectors of them: vector/activation.h.
float activate(const ActivationSpec& spec, float x);

/// Rough floating point operations per element, for cost estimates.
double activation_flops(Activation kind);

}  // namespace modelflow
