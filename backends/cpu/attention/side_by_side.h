// Attention whose heads lie side by side in the channels of each token: its operands, and what it costs.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Queries, keys and values of a call in numbers.
struct SideBySide {
  std::size_t batch = 0, tokens = 0, heads = 0, size = 0, width = 0;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  std::size_t row = 0;  ///< floats from token to token of q, k and v
};
/// Reads the first operand, which holds all three where it is `packed`, else the first three; throws
/// Error(invalid_input) in the name of `op` where one is not float32 or extents do not fit.
SideBySide read_side_by_side(const std::string& op, const Invocation& call, std::int64_t heads, bool packed);

/// Products at 0.4 of the peak, or operands and result moved once.
double cost_side_by_side(const Call& call, const Target& target);

}  // namespace modelflow::cpu
