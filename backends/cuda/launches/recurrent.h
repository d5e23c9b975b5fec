// What goes from the host to kernels that go along time step by step: LSTM and GRU, scans of programs and of selective
// state spaces.
#pragma once

#include "backends/cuda/launches/elements.h"

namespace modelflow::cuda {

/// LSTM or GRU over whole sequences; weights and their gates as ONNX has them. The gates of x come first, for all steps
/// at once, then each step is a launch, and two where the reset of GRU comes before its product; or `walks`: one
/// launch, in which a block takes all steps of a few sequences.
struct RecurrentLaunch {
  static constexpr int kWalkRows = 4, kStepRows = 8;  ///< sequences that share one reading of r
  Number number;
  bool lstm, linear_before_reset, reverse;  ///< reverse: the only direction is the second one
  bool walks;
  bool tensor_cores, large;  ///< as in MatMulLaunch
  bool wide_x, wide_r;       ///< x and w may be moved 16 bytes at a time, r four numbers; the launcher sets them
  std::int64_t seq, batch, input, hidden, dirs;
  std::int64_t x_step, x_row;  ///< from one step and from one sequence to the next, in rows of x
  const void *x, *w, *r;
  const void *bias, *lengths, *first_h, *first_c;  ///< null where there is none
  float clip;                                      ///< infinity: none
  void *y, *last_h, *last_c;                       ///< null where nobody asks for it
  std::int64_t y_step, y_row, y_dir;               ///< in elements
  float* gates;                                    ///< of x and the biases: [dirs, rows of x, gates * hidden]
  float* h;                                        ///< [2, dirs, batch, hidden]: in front of even steps, of odd ones
  float* c;                                        ///< [dirs, batch, hidden], of LSTM
  float* reset;                                    ///< the same of r * h, where the reset comes first
};

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
