// LayerNorm on a GPU, as far as planning goes: one pass over the operands at the bandwidth of the device's memory.
#include "backends/cuda/kernels.h"

namespace modelflow::cuda {
namespace {

/// A block keeps one row in the memory that its threads share.
Verdict accepts(const Call& call, const Target& target) {
  for (const Operand& operand : call.inputs)
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
  if (call.attrs.integer("axis", -1) != -1) return no("not the last axis alone");
  const Shape& x = call.in(0).shape;
  if (!x.has_rank() || x.rank() == 0 || !x.back().known()) return no("the length of a row is unknown", call.in(0).name);
  return 4 * x.back().value() <= target.l1 ? yes() : no("a row does not fit into shared memory", call.in(0).name);
}

double cost(const Call& call, const Target& target) {
  double bytes = 0;
  for (const Operand& operand : call.inputs) bytes += 4 * operand.shape.known_elements();
  for (const Operand& operand : call.outputs) bytes += 4 * operand.shape.known_elements();
  return target.launch + target.stream(bytes);
}

}  // namespace

const Kernel layer_norm = {
    .op = "LayerNorm",
    .name = "cuda.layer_norm",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = nullptr,
};

}  // namespace modelflow::cuda
