// What goes from the host to kernels that go along time step by step: scans of programs and of selective state spaces.
#pragma once

#include "backends/cuda/launches/elements.h"

namespace modelflow::cuda {

/// A program for every step of sequences of [outer, length, inner], with states that go on from step to step in
/// float32. Its inputs: sequences, what is the same in all steps, states. The last two lie in places of a step, [outer,
/// inner].
struct PointwiseScanLaunch {
  static constexpr std::uint8_t kResult = 0x80;
  static constexpr int kWide = 4;
  Number number;
  std::int64_t outer, length, inner, first, steps;  ///< `first`: the row that is read first
  std::int32_t inputs, sequences, states;
  bool wide;  ///< a thread has kWide elements of a step, where the launcher finds them side by side
  const void* x[Places::kOperands];
  Places places;                  ///< of inputs that are no sequences, within a step
  void* y;                        ///< [outer, steps, inner]
  void* last[Places::kOperands];  ///< of each state: [outer, inner], or null
  Program program;
  std::uint8_t takers[Program::kLines];  ///< of each line: a bit for each state that it is behind the step, and kResult
};

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
