// The body of a fused op in another float type than float32.
#pragma once

#include "modelflow/function.h"
#include "modelflow/kernel.h"

namespace modelflow {

/// Makes a body that was written for float32 compute in `type`: its numbers become numbers of that type, Casts to
/// float32 Casts to it. What sums many squares or magnitudes is computed in float32 between Casts, with what lies
/// between that and the result: so it is where one op does it all, and squares leave the range of float16 early. So is
/// all of a recurrence, and of what rounds to steps of 8 bits.
/// `call` says which of the formal inputs are floats.
void compute_in(DType type, Function& body, const Call& call, int opset);

}  // namespace modelflow
