// The activations of fused ops on a device, one number at a time in float32.
#pragma once

#include "backends/activation.h"
#include "backends/cuda/device/device.h"

namespace modelflow::cuda {

/// Comparisons are written so that NaN stays NaN.
__device__ inline float clipped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

__device__ inline float mish(float x) {
  if (x > 20) return x;
  const float e = expf(x), n = e * (e + 2);  // tanh(log(1 + e)) = n / (n + 2)
  return x * n / (n + 2);
}

__device__ inline float plain_activation(const ActivationSpec& s, float x) {
  switch (s.kind) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::clip:
      return clipped(x, s.alpha, s.beta);
    case Activation::leaky_relu:
      return x < 0 ? s.alpha * x : x;
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::hard_swish:
      return x * clipped(s.alpha * x + s.beta, 0, 1);
    case Activation::hard_sigmoid:
      return clipped(s.alpha * x + s.beta, 0, 1);
    case Activation::gelu:
      return 0.5F * x * (1 + erff(x * 0.70710678F));
    case Activation::gelu_tanh:
      return 0.5F * x * (1 + tanhf(0.79788456F * (x + 0.044715F * x * x * x)));
    case Activation::quick_gelu:
      return x * sigmoid(s.alpha * x);
    case Activation::mish:
      return mish(x);
    case Activation::tanh:
      return tanhf(x);
  }
  return x;
}

/// Also of an activation that is none: scale and shift behind it.
__device__ inline float activated(const ActivationSpec& s, float x) {
  return plain_activation(s, x) * s.scale + s.shift;
}

}  // namespace modelflow::cuda
