// Reads the operands of attention whose heads lie side by side, and prices it.
#include "backends/cpu/attention/side_by_side.h"

#include <algorithm>

#include "backends/ops/split_heads.h"

namespace modelflow::cpu {

SideBySide read_side_by_side(const std::string& op, const Invocation& call, std::int64_t heads, bool packed) {
  for (std::size_t i = 0; i < call.inputs(); ++i)
    if (call.input(i).dtype != DType::f32) throw Error(ErrorKind::invalid_input, op + ": an input is not float32");
  const ops::HeadSizes sizes = ops::head_sizes(op, call, heads, packed);
  SideBySide p;
  p.batch = static_cast<std::size_t>(sizes.batch), p.tokens = static_cast<std::size_t>(sizes.tokens);
  p.row = static_cast<std::size_t>(sizes.row);
  p.heads = static_cast<std::size_t>(heads), p.size = static_cast<std::size_t>(sizes.size);
  p.width = p.heads * p.size;
  const auto floats = [&](std::size_t i) { return static_cast<const float*>(call.input(i).data); };
  p.q = floats(0);
  p.k = packed ? p.q + p.width : floats(1);
  p.v = packed ? p.k + p.width : floats(2);
  return p;
}

double cost_side_by_side(const Call& call, const Target& target) {
  double elements = call.outputs.at(0).shape.known_elements();
  for (const Operand& operand : call.inputs) elements += operand.shape.known_elements();
  return std::max(target.compute(find_fused_op(call.op)->flops(call), 0.4), target.stream(4 * elements));
}

}  // namespace modelflow::cpu
