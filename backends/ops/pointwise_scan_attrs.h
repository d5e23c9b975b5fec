// The attributes of PointwiseScan, read.
#pragma once

#include "backends/call_attrs.h"
#include "backends/ops/pointwise_program.h"

namespace modelflow::ops {

struct PointwiseScanAttrs {
  std::vector<Instruction> program;  ///< of one step; its inputs: sequences, what is the same in all steps, states
  std::size_t sequences = 1, count = 0;
  std::size_t result = 0;         ///< the line that y has a row of
  std::vector<std::size_t> next;  ///< the line that each state is behind a step
  std::int64_t axis = 1;          ///< of time
  std::int64_t first = 0;         ///< row of the sequences that is read first
  std::int64_t steps = 1;
  bool keep_state = false;  ///< the last states are results

  /// Throws Error(invalid_input) where they are not what the op declares.
  explicit PointwiseScanAttrs(const Call& call);

  std::size_t inputs() const { return count; }
  std::size_t first_state() const { return count - next.size(); }
  bool is_state(std::size_t input) const { return input >= first_state(); }
  /// Lines that are read outside of their step, each once: `result`, then those of states.
  std::vector<std::size_t> written() const;
};

}  // namespace modelflow::ops
