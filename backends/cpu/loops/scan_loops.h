// The loop of scan.h, written over vectors (see vector.h).
#pragma once

#include "backends/cpu/loops/scan.h"
#include "backends/cpu/vector/math.h"

namespace modelflow::cpu {
namespace {

/// A product that is rounded before something is added: beyond the range it is infinite then.
MODELFLOW_INLINE Floats product(Floats a, Floats b) {
  Floats p = a * b;
  asm("" : "+v"(p));  // nothing, but the compiler does not see that
  return p;
}

/// h = exp(delta a) h + u b or (delta b) u, and y = h c, for all states of a vector of channels before the next.
/// No multiplication is fused with an addition: none is in the ops that this stands for.
template <bool scales_b>
MODELFLOW_FLAT void selective_steps(const SelectiveSteps& s) {
  for (std::size_t t = 0; t < s.steps; ++t) {
    const float *b = s.b + t * s.states, *c = s.c + t * s.states;
    vectors(s.channels, [&](std::size_t i, auto part) {
      const Floats u = load(s.u + t * s.stride + i, part), delta = load(s.delta + t * s.stride + i, part);
      Floats y = {};
      for (std::size_t n = 0; n < s.states; ++n) {
        const Floats decay = exp_of_any(delta * load(s.a + n * s.width + i));
        const Floats added = scales_b ? product(product(delta, all(b[n])), u) : product(u, all(b[n]));
        const Floats h = product(decay, load(s.h + n * s.width + i)) + added;
        store(s.h + n * s.width + i, h);
        y += product(h, all(c[n]));
      }
      store(s.y + t * s.stride + i, y, part);
    });
  }
}

}  // namespace
}  // namespace modelflow::cpu
