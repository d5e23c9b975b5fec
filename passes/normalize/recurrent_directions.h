// The directions of recurrent layers.
#pragma once

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Inputs of LSTM, GRU and RNN.
enum RecurrentInput : std::size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

inline std::string direction(const Node& node) { return node.attrs.text("direction", "forward"); }

/// A forward layer over a reversed sequence becomes a reverse layer, whose Y comes out in the order of the sequence.
bool run_backwards(Node& node, Context& context);

}  // namespace modelflow::passes
