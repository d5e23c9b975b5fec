// Prices products and convolutions on a GPU.
#include "backends/cuda/work.h"

#include <algorithm>

#include "backends/cuda/places.h"

namespace modelflow::cuda {
namespace {

/// What hand-written tiles are expected to reach of the peak. Not measured on a device yet.
constexpr double kTensorShare = 0.4, kPlainShare = 0.5;

}  // namespace

double moving_seconds(const Call& call, const Target& target) {
  return target.launch + target.stream(operand_bytes(call));
}

double product_seconds(const Call& call, const Target& target) {
  return product_seconds_in(call.in(0).dtype, 0, call, target);
}

double product_seconds_in(DType factors, double beside, const Call& call, const Target& target) {
  const FusedOp& op = *find_fused_op(call.op);
  const bool tensor = factors != DType::f32 && target.sm >= kTensorCores;
  const double flops = op.flops ? op.flops(call) : 0;
  const double arithmetic = tensor ? target.compute(factors, flops, kTensorShare) : target.compute(flops, kPlainShare);
  return target.launch + std::max(arithmetic + target.compute(beside, kPlainShare), target.stream(operand_bytes(call)));
}

}  // namespace modelflow::cuda
