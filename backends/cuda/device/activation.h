// Activations of fused ops on a device: what backends/activation.cpp says for one number.
#pragma once

#include "backends/activation.h"
#include "backends/cuda/device/device.h"

namespace modelflow::cuda {

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

/// Comparisons are such that NaN stays NaN.
__device__ inline float hard_sigmoid(const ActivationSpec& s, float x) {
  const float y = s.alpha * x + s.beta;
  return y < 0.0F ? 0.0F : y > 1.0F ? 1.0F : y;
}

__device__ inline float mish(float x) {
  if (x > 20.0F) return x;
  const float e = expf(x), n = e * (e + 2.0F);  // tanh(log(1 + e)) = n / (n + 2)
  return x * (n / (n + 2.0F));
}

template <int N, class F>
__device__ inline void each(float (&v)[N], F f) {
  for (int k = 0; k < N; ++k) v[k] = f(v[k]);
}

/// In place, with one choice for all numbers; without scale and shift.
template <int N>
__device__ inline void activate_plainly(const ActivationSpec& s, float (&v)[N]) {
  switch (s.kind) {
    case Activation::none:
      return;
    case Activation::relu:
      return each(v, [](float x) { return x < 0.0F ? 0.0F : x; });
    case Activation::squared_relu:
      return each(v, [](float x) { return x < 0.0F ? 0.0F : x * x; });
    case Activation::clip:
      return each(v, [&s](float x) {
        const float low = x < s.alpha ? s.alpha : x;
        return s.beta < low ? s.beta : low;
      });
    case Activation::leaky_relu:
    case Activation::prelu:
      return each(v, [&s](float x) { return x < 0.0F ? s.alpha * x : x; });
    case Activation::bounded_leaky_relu:
      return each(v, [&s](float x) {
        const float leaky = x < 0.0F ? s.alpha * x : x;
        return leaky < s.beta ? s.beta : leaky;
      });
    case Activation::sigmoid:
      return each(v, [](float x) { return sigmoid(x); });
    case Activation::silu:
      return each(v, [](float x) { return x * sigmoid(x); });
    case Activation::hard_swish:
      return each(v, [&s](float x) { return x * hard_sigmoid(s, x); });
    case Activation::hard_sigmoid:
      return each(v, [&s](float x) { return hard_sigmoid(s, x); });
    case Activation::gelu:
      return each(v, [](float x) { return 0.5F * x * (1.0F + erff(x * 0.70710678F)); });
    case Activation::gelu_tanh:
      return each(v, [](float x) { return 0.5F * x * (1.0F + tanhf(0.79788456F * (x + 0.044715F * x * x * x))); });
    case Activation::quick_gelu:
      return each(v, [&s](float x) { return x * sigmoid(s.alpha * x); });
    case Activation::mish:
      return each(v, [](float x) { return mish(x); });
    case Activation::tanh:
      return each(v, [](float x) { return tanhf(x); });
    case Activation::elu:
      return each(v, [&s](float x) { return x < 0.0F ? s.alpha * (expf(x) - 1.0F) : x; });
    case Activation::softplus:
      return each(v, [](float x) { return x > 0.0F ? x + log1pf(expf(-x)) : log1pf(expf(x)); });
  }
}

/// In place. Several numbers at a time spare the choice.
template <int N>
__device__ inline void activate_each(const ActivationSpec& s, float (&v)[N]) {
  activate_plainly(s, v);
  if (s.scale != 1.0F || s.shift != 0.0F) each(v, [&s](float x) { return x * s.scale + s.shift; });
}

__device__ inline float activated(const ActivationSpec& s, float x) {
  float one[1] = {x};
  activate_each(s, one);
  return one[0];
}

}  // namespace modelflow::cuda
