// Attention whose heads lie side by side in the channels of their operands: where they begin, and what it costs.
#pragma once

#include "backends/cuda/launches/attention.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// Reads queries, keys and values, one operand or three, and allocates y. Throws Error(invalid_input) naming the op.
HeadsLaunch read_heads(const char* op, Invocation& call, std::int64_t heads, bool packed, const Target& target);

/// Floats for each of so many numbers in scratch memory of the call.
float* scratch_floats(Invocation& call, std::int64_t count);

/// So many launches, which move `between` bytes from one to the next.
double heads_seconds(const Call& call, const Target& target, double launches, double between);

}  // namespace modelflow::cuda
