// Numbers and operands for sample calls.
#pragma once

#include <list>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// Numbers that are the same on every machine, of a size that keeps products over `depth` of them near one.
Tensor sample_weights(const Dims& dims, std::int64_t depth);

/// The same as int8, in -127 .. 127.
Tensor sample_steps(const Dims& dims);

/// The same as uint8, any of them.
Tensor sample_bytes(const Dims& dims);

/// Attributes of a sample and some more, which win.
Attrs with(Attrs attrs, const Attrs& more);

/// The operand that this tensor, which has to outlive it, is.
Operand constant_operand(const char* name, const Tensor& tensor);

/// Calls and the weights that their operands point to.
struct Samples {
  std::vector<Call> calls;
  std::list<Tensor> weights;
  /// A float32 operand; with `depth` a constant one.
  Operand operand(const char* name, const Dims& dims, std::int64_t depth = 0);
};

}  // namespace modelflow::ops
