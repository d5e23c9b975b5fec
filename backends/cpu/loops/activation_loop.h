// An activation on floats that lie one behind the other, compiled for each instruction set (see vector.h).
#pragma once

#include <cstddef>

#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// y may be x. One call for as many as there are: it begins with some twenty constants.
MODELFLOW_FLAT __attribute__((noinline)) void activate(const ActivationSpec& spec, const float* x, float* y,
                                                       std::size_t n) {
  const auto run = [=](auto f) {
    vectors(n, [&](std::size_t i, auto part) { store(y + i, f(load(x + i, part)), part); });
  };
  // Those that stand alone for the most part: times 1 plus 0 would be a tenth of their instructions.
  if (!spec.affine() && spec.kind == Activation::tanh) return run(Tanh{});
  if (!spec.affine() && spec.kind == Activation::sigmoid) return run(Sigmoid{});
  with_activation(spec, run);
}

}  // namespace
}  // namespace modelflow::cpu
