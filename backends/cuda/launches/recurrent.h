// What goes from the host to kernels that go along time step by step: selective scans.
#pragma once

#include "backends/cuda/launches.h"

namespace modelflow::cuda {

/// h = exp(delta a) h + delta b u for each channel and state, y = h c. u and delta: [batch, length, channels], b and c:
/// [batch, length, states], a: [channels, states]; of the rows of a sequence the first `steps` are taken.
struct SelectiveScanLaunch {
  static constexpr int kStates = 16;  ///< that the threads of a channel hold at once
  Number number;
  std::int32_t lanes;  ///< threads of a warp that share the states of a channel: 1, 4 or 16
  std::int64_t batch, length, steps, channels, states;
  bool scales_b;  ///< b times delta; else u holds it
  const void *u, *delta, *a, *b, *c;
  const void* first;  ///< [batch, channels, states]; null: zeros
  void* y;            ///< [batch, steps, channels]
  void* last;         ///< as `first`; may be null
  float* carried;     ///< as `first`, where there are more than kStates; else null
};

}  // namespace modelflow::cuda
