// Readers of complex numbers that want only a part or the size of them.
#pragma once

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Complex numbers are a last axis of two for DFT and STFT. Most models go on with the real and the imaginary part, or
/// with the size: then a tensor for each part is better than both in turns.
///
/// True when everything that reads `z`, behind views and numbers that scale it, takes its parts or its size.
bool read_as_parts(const Value& z);
/// Gives all these readers what they want, made of the parts, each of the shape of `z` without the last axis.
void serve_parts(Value& z, Value& real, Value& imaginary, Context& context);

}  // namespace modelflow::passes
