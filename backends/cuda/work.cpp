// Prices products and convolutions on a GPU.
#include "backends/cuda/work.h"

#include <algorithm>

#include "backends/cuda/places.h"

namespace modelflow::cuda {
double product_seconds(const Call& call, const Target& target) { return product_seconds_beside(0, call, target); }

double product_seconds_beside(double beside, const Call& call, const Target& target) {
  const FusedOp& op = *find_fused_op(call.op);
  const bool tensor = call.in(0).dtype != DType::f32 && target.sm >= kTensorCores;
  const double flops = op.flops ? op.flops(call) : 0;
  const double arithmetic =
      tensor ? target.compute(call.in(0).dtype, flops, kTensorShare) : target.compute(flops, kPlainShare);
  return target.launch + std::max(arithmetic + target.compute(beside, kPlainShare), target.stream(operand_bytes(call)));
}

}  // namespace modelflow::cuda
