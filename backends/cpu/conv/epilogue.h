// The epilogue of convolutions: what happens to sums in registers before they are stored. For files named so, see
// vector.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv/late_residual.h"
#include "backends/cpu/loops/activation_loop.h"

namespace modelflow::cpu {
namespace {

struct Epilogue {
  ActivationSpec activation;
  ops::Residual residual;
  const float* slopes = nullptr;  ///< of PRelu: those of the filters at hand
};

/// Activations of a few instructions run on the accumulators; the others would bloat every tile and take a second pass
/// (activation_loop.h) over the tile while it is in L1.
constexpr bool runs_in_registers(Activation kind) {
  return kind == Activation::none || kind == Activation::relu || kind == Activation::squared_relu ||
         kind == Activation::clip || kind == Activation::leaky_relu || kind == Activation::bounded_leaky_relu ||
         kind == Activation::hard_swish || kind == Activation::hard_sigmoid || kind == Activation::prelu;
}

/// PRelu on the sums of a vector of filters, whose slopes lie at `slopes`.
MODELFLOW_INLINE Affine<LeakyRelu> bend_of(const ActivationSpec& spec, const float* slopes) {
  return {{load(slopes)}, all(spec.scale), all(spec.shift)};
}

template <class Body>
MODELFLOW_INLINE void with_register_activation(const ActivationSpec& spec, Body body) {
  const Floats scale = all(spec.scale), shift = all(spec.shift);
  const Floats alpha = all(spec.alpha), beta = all(spec.beta);
  switch (spec.kind) {
    case Activation::relu:
      return body(Affine<Relu>{{}, scale, shift});
    case Activation::squared_relu:
      return body(Affine<SquaredRelu>{{}, scale, shift});
    case Activation::clip:
      return body(Affine<Clip>{{alpha, beta}, scale, shift});
    case Activation::leaky_relu:
      return body(Affine<LeakyRelu>{{alpha}, scale, shift});
    case Activation::bounded_leaky_relu:
      return body(Affine<BoundedLeakyRelu>{{alpha, beta}, scale, shift});
    case Activation::hard_swish:
      return body(Affine<HardSwish>{{{alpha, beta}}, scale, shift});
    case Activation::hard_sigmoid:
      return body(Affine<HardSigmoid>{{alpha, beta}, scale, shift});
    default:
      return;
  }
}

}  // namespace
}  // namespace modelflow::cpu
