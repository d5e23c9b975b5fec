// Reads the operands of attention whose heads lie side by side, and prices it.
#include "backends/cuda/heads.h"

#include <algorithm>
#include <string>

#include "backends/cuda/places.h"
#include "backends/cuda/work.h"

namespace modelflow::cuda {

HeadsLaunch read_heads(const char* op, Invocation& call, std::int64_t heads, bool packed, const Target& target) {
  const auto fail = [&](const char* what) { throw Error(ErrorKind::invalid_input, std::string(op) + ": " + what); };
  HeadsLaunch of = {};
  of.number = shared_number(op, call);
  const View x = call.input(0);
  if (x.dims.size() != 3) fail("an operand is not of rank 3");
  for (std::size_t i = 1; !packed && i < 3; ++i)
    if (!std::ranges::equal(call.input(i).dims, x.dims)) fail("queries, keys and values differ in their extents");
  const std::int64_t all = heads * (packed ? 3 : 1);
  if (x.dims[2] % all != 0) fail("the channels do not divide into the heads");
  of.batch = x.dims[0], of.tokens = x.dims[1], of.heads = heads, of.size = x.dims[2] / all;
  const std::int64_t width = heads * of.size;
  const auto bytes = static_cast<std::size_t>(width) * bytes_of(of.number);
  of.q = of.k = of.v = {x.data, of.tokens * x.dims[2], of.size, x.dims[2]};
  of.k.data = packed ? static_cast<const std::byte*>(x.data) + bytes : call.input(1).data;
  of.v.data = packed ? static_cast<const std::byte*>(x.data) + 2 * bytes : call.input(2).data;
  of.y = {call.output(0, Dims{of.batch, of.tokens, width}), of.tokens * width, of.size, width};
  of.tensor_cores = of.number != Number::f32 && target.sm >= kTensorCores;
  return of;
}

float* scratch_floats(Invocation& call, std::int64_t count) {
  return reinterpret_cast<float*>(call.scratch(static_cast<std::size_t>(count) * sizeof(float)));
}

double heads_seconds(const Call& call, const Target& target, double launches, double between) {
  const bool far = between > static_cast<double>(target.l2);
  const double moving = far ? target.stream(between) : between / (target.l2_bandwidth * target.cores);
  return product_seconds(call, target) + (launches - 1) * target.launch + moving;
}

}  // namespace modelflow::cuda
