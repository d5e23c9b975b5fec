// Reads the operands of attention whose heads lie side by side, and prices it.
#include "backends/cuda/heads.h"

#include <algorithm>

#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/split_heads.h"

namespace modelflow::cuda {

HeadsLaunch read_heads(const char* op, Invocation& call, std::int64_t heads, bool packed, const Target& target) {
  HeadsLaunch of = {};
  of.number = shared_number(op, call);
  const ops::HeadSizes sizes = ops::head_sizes(op, call, heads, packed);
  of.batch = sizes.batch, of.tokens = sizes.tokens, of.heads = heads, of.size = sizes.size;
  const void* x = call.input(0).data;
  const std::int64_t width = heads * of.size;
  const auto bytes = static_cast<std::size_t>(width) * bytes_of(of.number);
  of.q = of.k = of.v = {x, of.tokens * sizes.row, of.size, sizes.row};
  of.k.data = packed ? static_cast<const std::byte*>(x) + bytes : call.input(1).data;
  of.v.data = packed ? static_cast<const std::byte*>(x) + 2 * bytes : call.input(2).data;
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
