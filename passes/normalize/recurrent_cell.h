// One step of an LSTM or GRU, as a loop's body has it.
#pragma once

#include <optional>
#include <vector>

#include "passes/normalize/gate_sum.h"

namespace modelflow::passes {

/// One step of an LSTM or GRU as a body has it.
struct RecurrentCell {
  /// The sum inside a gate. `h`: apart from `x` only where a GRU resets it after the product. With `negated` the gate
  /// of ONNX is one minus that of the graph: its sum has the other sign.
  struct Gate {
    GateSum x, h;
    bool negated = false;
  };
  const char* op;           ///< "LSTM", "GRU"
  std::vector<Gate> gates;  ///< in the order of ONNX: i o f c, or z r h
  const Iteration::State *h = nullptr, *c = nullptr;
  const Value* reset = nullptr;  ///< the reset state, where a GRU resets before the product
  bool linear_before_reset = false;
};

/// The cell whose state is `h` with this many numbers; nothing when the body is anything else. It is read off its
/// formulas: gates are known by their place in them, their columns may stand in any order.
std::optional<RecurrentCell> read_cell(const Iteration& iteration, const Iteration::State& h, std::int64_t hidden);

}  // namespace modelflow::passes
