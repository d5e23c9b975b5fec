// The loop of scan.h, written over vectors (see vector.h).
#pragma once

#include "backends/cpu/loops/scan.h"
#include "backends/cpu/vector/math.h"

namespace modelflow::cpu {
namespace {

/// h = exp(delta a) h + u b and y = h c, for all states of a vector of channels before the next.
MODELFLOW_FLAT void selective_steps(const SelectiveSteps& s) {
  for (std::size_t t = 0; t < s.steps; ++t) {
    const float *b = s.b + t * s.states, *c = s.c + t * s.states;
    vectors(s.channels, [&](std::size_t i, auto part) {
      const Floats u = load(s.u + t * s.stride + i, part), delta = load(s.delta + t * s.stride + i, part);
      Floats y = {};
      for (std::size_t n = 0; n < s.states; ++n) {
        const Floats decay = exp_of_any(delta * load(s.a + n * s.width + i));
        const Floats h = decay * load(s.h + n * s.width + i) + u * b[n];
        store(s.h + n * s.width + i, h);
        y += h * c[n];
      }
      store(s.y + t * s.stride + i, y, part);
    });
  }
}

}  // namespace
}  // namespace modelflow::cpu
