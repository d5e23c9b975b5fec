// A call of LSTM or GRU, or of their int8 forms, in numbers: operands, lengths, which calls the kernels take, and its
// work.
#pragma once

#include "backends/ops/recurrent_attrs.h"

namespace modelflow::cpu {

/// One call of LSTM, GRU or their int8 forms in numbers.
struct RecurrentProblem {
  /// Checks types, shapes and lengths; throws Error(invalid_input).
  RecurrentProblem(const ops::RecurrentAttrs& attrs, const Invocation& call);

  /// Allocates the outputs; those of an empty problem are complete then.
  void allocate(Invocation& call);

  const float* x_row(std::size_t step, std::size_t row) const {
    return x + (attrs.x_batch_first ? row * seq + step : step * batch + row) * input;
  }
  float* y_row(std::size_t step, std::size_t dir, std::size_t row) const;
  /// Steps of one sequence.
  std::size_t length(std::size_t row) const { return lengths ? static_cast<std::size_t>(lengths[row]) : seq; }
  /// Where in time the `step`-th step of a direction lies.
  std::size_t time(std::size_t step, std::size_t dir, std::size_t row) const {
    return attrs.reverse || dir == 1 ? length(row) - 1 - step : step;
  }
  /// Elements of initial_h, Y_h and the like in front of one row.
  std::size_t state_at(std::size_t dir, std::size_t row) const { return (dir * batch + row) * hidden; }

  const ops::RecurrentAttrs& attrs;
  std::size_t seq = 0, batch = 0, input = 0, hidden = 0, dirs = 0;
  const float *x = nullptr, *lengths = nullptr, *initial_h = nullptr, *initial_c = nullptr;
  float *y = nullptr, *y_h = nullptr, *y_c = nullptr;
};

/// What the kernels can run at all: constant weights.
Verdict accepts_recurrent(const Call& call, const Target&);

/// What one call takes, unknown dims as 1.
struct RecurrentWork {
  double flops = 0;   ///< of the products
  double gates = 0;   ///< activations
  double step_bytes;  ///< weights that each step reads
  double steps = 1;
  double bytes = 0;  ///< x, its weights, y
};
RecurrentWork recurrent_work(const Call& call);

}  // namespace modelflow::cpu
