// Activations of fused ops: their names in attributes, their meaning for one number and their rough cost.
#include "backends/activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "backends/call_attrs.h"
#include "modelflow/attr.h"
#include "modelflow/error.h"

namespace modelflow {
namespace {

struct Name {
  std::string_view text;
  Activation kind;
};
constexpr std::array kNames = {Name{"None", Activation::none},
                               Name{"Relu", Activation::relu},
                               Name{"SquaredRelu", Activation::squared_relu},
                               Name{"Clip", Activation::clip},
                               Name{"LeakyRelu", Activation::leaky_relu},
                               Name{"BoundedLeakyRelu", Activation::bounded_leaky_relu},
                               Name{"Sigmoid", Activation::sigmoid},
                               Name{"SiLU", Activation::silu},
                               Name{"HardSwish", Activation::hard_swish},
                               Name{"HardSigmoid", Activation::hard_sigmoid},
                               Name{"Gelu", Activation::gelu},
                               Name{"GeluTanh", Activation::gelu_tanh},
                               Name{"QuickGelu", Activation::quick_gelu},
                               Name{"Mish", Activation::mish},
                               Name{"Tanh", Activation::tanh},
                               Name{"Elu", Activation::elu},
                               Name{"Softplus", Activation::softplus},
                               Name{"PRelu", Activation::prelu}};

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float hard_sigmoid(const ActivationSpec& s, float x) { return std::clamp(s.alpha * x + s.beta, 0.0f, 1.0f); }

float mish(float x) {
  if (x > 20) return x;
  const float e = std::exp(x), n = e * (e + 2);  // tanh(log(1 + e)) = n / (n + 2)
  return x * n / (n + 2);
}

float plain(const ActivationSpec& s, float x) {
  switch (s.kind) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::squared_relu:
      return x < 0 ? 0 : x * x;
    case Activation::clip:
      return std::min(std::max(x, s.alpha), s.beta);
    case Activation::leaky_relu:
    case Activation::prelu:
      return x < 0 ? s.alpha * x : x;
    case Activation::bounded_leaky_relu:
      return std::max(x < 0 ? s.alpha * x : x, s.beta);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::hard_swish:
      return x * hard_sigmoid(s, x);
    case Activation::hard_sigmoid:
      return hard_sigmoid(s, x);
    case Activation::gelu:
      return 0.5f * x * (1 + std::erf(x * 0.70710678f));
    case Activation::gelu_tanh:
      return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    case Activation::quick_gelu:
      return x * sigmoid(s.alpha * x);
    case Activation::mish:
      return mish(x);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::elu:
      return x < 0 ? s.alpha * (std::exp(x) - 1) : x;
    case Activation::softplus:
      return x > 0 ? x + std::log(1 + std::exp(-x)) : std::log(1 + std::exp(x));
  }
  return x;
}

}  // namespace

Activation activation_named(std::string_view text) {
  for (const Name& name : kNames)
    if (name.text == text) return name.kind;
  throw Error(ErrorKind::unsupported, "no kernel knows the activation '" + std::string(text) + "'");
}

ActivationSpec activation_of(const CallAttrs& attrs) {
  return {activation_named(attrs.text("activation")), attrs.number("alpha"), attrs.number("beta"),
          attrs.number("post_scale"), attrs.number("post_shift")};
}

float activate(const ActivationSpec& s, float x) {
  const float y = plain(s, x);
  return s.affine() ? y * s.scale + s.shift : y;
}

double activation_flops(Activation kind) {
  switch (kind) {
    case Activation::none:
      return 0;
    case Activation::relu:
    case Activation::squared_relu:
    case Activation::clip:
    case Activation::leaky_relu:
    case Activation::bounded_leaky_relu:
    case Activation::prelu:
      return 2;
    case Activation::hard_swish:
    case Activation::hard_sigmoid:
      return 5;
    default:
      return 30;
  }
}

}  // namespace modelflow
