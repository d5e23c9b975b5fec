// What Pool, QPool and PoolBf16 share. A call's op says which of them it is.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp pool_op;

std::string pool_body(const Call& call, int opset);
std::vector<std::string> pool_inputs(const Call& call);
std::vector<std::string> pool_attributes(const Call& call, int opset);
Attrs pool_defaults();
Verdict infer_pool(Call& call);
std::vector<Call> pool_samples(const char* kind, DType dtype);

}  // namespace modelflow::ops
