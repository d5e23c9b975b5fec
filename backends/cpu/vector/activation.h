// Activations of vectors of floats, compiled for each instruction set (see vector.h).
#pragma once

#include "backends/activation.h"
#include "backends/cpu/vector/math.h"

namespace modelflow::cpu {
namespace {

// max and min give their second operand where one of the two is no number: x stands there, so that NaN stays NaN.

struct Identity {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return x; }
};
struct Relu {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return max(Floats{}, x); }
};
struct SquaredRelu {
  MODELFLOW_INLINE Floats operator()(Floats x) const {
    const Floats r = max(Floats{}, x);
    return r * r;
  }
};
struct Clip {
  Floats low, high;
  MODELFLOW_INLINE Floats operator()(Floats x) const { return min(high, max(low, x)); }
};
struct LeakyRelu {
  Floats alpha;
  MODELFLOW_INLINE Floats operator()(Floats x) const { return x < Floats{} ? x * alpha : x; }
};
struct BoundedLeakyRelu {
  Floats alpha, low;
  MODELFLOW_INLINE Floats operator()(Floats x) const { return max(low, x < Floats{} ? x * alpha : x); }
};
struct Sigmoid {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return sigmoid(x); }
};
struct Silu {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return gated(x, x); }
};
struct HardSigmoid {
  Floats alpha, beta;
  MODELFLOW_INLINE Floats operator()(Floats x) const { return min(all(1.0f), max(Floats{}, alpha * x + beta)); }
};
struct HardSwish {
  HardSigmoid gate;
  MODELFLOW_INLINE Floats operator()(Floats x) const { return x * gate(x); }
};
struct Gelu {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return x * normal(x); }
};
struct GeluTanh {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return x * normal_by_tanh(x); }
};
struct QuickGelu {
  Floats alpha;
  MODELFLOW_INLINE Floats operator()(Floats x) const { return gated(x, alpha * x); }
};
struct Mish {
  MODELFLOW_INLINE Floats operator()(Floats x) const {
    const Floats e = x < all(-87.0f) ? Floats{} : exp(min(all(20.0f), x));
    const Floats n = e * (e + 2.0f);  // tanh(log(1 + e)) = n / (n + 2)
    return x * (n * reciprocal(n + 2.0f));
  }
};
struct Tanh {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return tanh(x); }
};

struct Elu {
  Floats alpha;
  MODELFLOW_INLINE Floats operator()(Floats x) const {
    const Floats e = x < all(-87.0f) ? Floats{} : exp(min(Floats{}, x));
    return x < Floats{} ? alpha * (e - 1.0f) : x;
  }
};
struct Softplus {
  MODELFLOW_INLINE Floats operator()(Floats x) const {
    const Floats size = x < Floats{} ? -x : x;  // NaN stays NaN in max(0, x)
    return max(Floats{}, x) + log_of_one_and(size > all(87.0f) ? Floats{} : exp(-size));
  }
};

/// f, then times scale plus shift. Exact for 1 and 0, and hidden behind memory: so every activation is wrapped.
template <class F>
struct Affine {
  F f;
  Floats scale, shift;
  MODELFLOW_INLINE Floats operator()(Floats x) const { return f(x) * scale + shift; }
};

/// Calls `body` with the functor for this activation: the switch runs once, the loop inside `body` has none.
template <class Body>
void with_activation(const ActivationSpec& spec, Body plain_body) {
  const Floats scale = all(spec.scale), shift = all(spec.shift);
  const auto body = [&](auto f) { return plain_body(Affine<decltype(f)>{f, scale, shift}); };
  const Floats alpha = all(spec.alpha), beta = all(spec.beta);
  switch (spec.kind) {
    case Activation::none:
      return plain_body(Identity{});
    case Activation::relu:
      return body(Relu{});
    case Activation::squared_relu:
      return body(SquaredRelu{});
    case Activation::clip:
      return body(Clip{alpha, beta});
    case Activation::leaky_relu:
    case Activation::prelu:
      return body(LeakyRelu{alpha});
    case Activation::bounded_leaky_relu:
      return body(BoundedLeakyRelu{alpha, beta});
    case Activation::sigmoid:
      return body(Sigmoid{});
    case Activation::silu:
      return body(Silu{});
    case Activation::hard_swish:
      return body(HardSwish{{alpha, beta}});
    case Activation::hard_sigmoid:
      return body(HardSigmoid{alpha, beta});
    case Activation::gelu:
      return body(Gelu{});
    case Activation::gelu_tanh:
      return body(GeluTanh{});
    case Activation::quick_gelu:
      return body(QuickGelu{alpha});
    case Activation::mish:
      return body(Mish{});
    case Activation::tanh:
      return body(Tanh{});
    case Activation::elu:
      return body(Elu{alpha});
    case Activation::softplus:
      return body(Softplus{});
  }
}

}  // namespace
}  // namespace modelflow::cpu
