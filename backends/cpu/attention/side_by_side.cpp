// Reads the operands of attention whose heads lie side by side, and prices it.
#include "backends/cpu/attention/side_by_side.h"

#include <algorithm>

namespace modelflow::cpu {

SideBySide read_side_by_side(const std::string& op, const Invocation& call, std::int64_t heads, bool packed) {
  const auto fail = [&](const char* message) { throw Error(ErrorKind::invalid_input, op + ": " + message); };
  for (std::size_t i = 0; i < call.inputs(); ++i)
    if (call.input(i).dtype != DType::f32) fail("an input is not float32");
  const View x = call.input(0);
  if (x.dims.size() != 3) fail("an operand is not of rank 3");
  for (std::size_t i = 1; !packed && i < 3; ++i)
    if (!std::ranges::equal(call.input(i).dims, x.dims)) fail("queries, keys and values differ in their extents");
  const std::int64_t all = heads * (packed ? 3 : 1);
  if (x.dims[2] % all != 0) fail("the channels do not divide into the heads");
  SideBySide p;
  p.batch = static_cast<std::size_t>(x.dims[0]), p.tokens = static_cast<std::size_t>(x.dims[1]);
  p.row = static_cast<std::size_t>(x.dims[2]);
  p.heads = static_cast<std::size_t>(heads), p.size = static_cast<std::size_t>(x.dims[2] / all);
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
