// Prices products and convolutions on a GPU.
#include "backends/cuda/work.h"

#include <algorithm>
#include <array>

#include "backends/cuda/places.h"

namespace modelflow::cuda {
namespace {

/// How many times the rate of float32 tensor cores have, from the data sheets that the presets are made of: T4, A100,
/// A10, L4, H100 (SXM), B200, RTX 5090.
struct Generation {
  int sm;
  double times;
};
constexpr std::array kGenerations = {Generation{75, 8},    Generation{80, 16},  Generation{86, 4}, Generation{89, 4},
                                     Generation{90, 14.8}, Generation{100, 30}, Generation{120, 2}};
/// What hand-written tiles are expected to reach of the peak. Not measured on a device yet.
constexpr double kTensorShare = 0.4, kPlainShare = 0.5;

}  // namespace

double tensor_flops(const Target& target) {
  double times = 1;
  for (const Generation& generation : kGenerations)
    if (generation.sm <= target.sm) times = generation.times;
  return times * target.flops * target.cores;
}

double product_seconds(const Call& call, const Target& target) {
  const FusedOp& op = *find_fused_op(call.op);
  double bytes = 0;
  for (const Operand& operand : call.inputs) bytes += element_bytes(call) * operand.shape.known_elements();
  for (const Operand& operand : call.outputs) bytes += element_bytes(call) * operand.shape.known_elements();
  const bool tensor = call.in(0).dtype != DType::f32 && target.sm >= kTensorCores;
  const double flops = op.flops ? op.flops(call) : 0;
  const double arithmetic = tensor ? flops / (kTensorShare * tensor_flops(target)) : target.compute(flops, kPlainShare);
  return target.launch + std::max(arithmetic, target.stream(bytes));
}

}  // namespace modelflow::cuda
