// Counts multiplications and additions of fused ops, and the bytes that plain ops move in their place.
#include "backends/ops/work.h"

#include <algorithm>

#include "backends/call_attrs.h"

namespace modelflow::ops {
namespace {

double extent(const Operand& operand, std::size_t from_end) {
  if (!operand.shape.has_rank() || operand.shape.rank() <= from_end) return 1;
  return static_cast<double>(operand.shape[operand.shape.rank() - 1 - from_end].number().value_or(1));
}

/// Extents of an attention.
struct AttentionExtents {
  double batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
  double scores() const { return batch * heads * queries * keys; }
};

AttentionExtents attention_extents(const Call& call) {
  AttentionExtents e;
  e.heads = static_cast<double>(CallAttrs(call).integer("num_heads"));
  e.kv_heads = static_cast<double>(CallAttrs(call).integer("kv_heads"));
  const auto read = [&](std::size_t input, const char* layout, double heads, double& sequence, double& size) {
    const bool flat = CallAttrs(call).text(layout) == "BSH";
    sequence = extent(call.in(input), 1);
    size = extent(call.in(input), 0) / (flat ? heads : 1);
  };
  if (CallAttrs(call).flag("packed")) {
    read(0, "q_layout", e.heads + 2 * e.kv_heads, e.queries, e.size);
    e.keys = e.queries;
    e.value_size = e.size;
  } else {
    read(0, "q_layout", e.heads, e.queries, e.size);
    read(2, "v_layout", e.kv_heads, e.keys, e.value_size);
  }
  e.batch = call.outputs.at(0).shape.known_elements() / std::max(e.heads * e.queries * e.value_size, 1.0);
  return e;
}

}  // namespace

double first_extent(const Shape& shape) {
  return shape.has_rank() && shape.rank() > 0 ? static_cast<double>(shape[0].number().value_or(1)) : 1;
}

double conv_flops(const Call& call) {
  const double outputs = call.outputs.at(0).shape.known_elements();
  return 2 * outputs * call.in(1).shape.known_elements() / std::max(first_extent(call.in(1).shape), 1.0);
}

double conv_transpose_flops(const Call& call) {
  const Shape& w = call.in(1).shape;
  return 2 * call.in(0).shape.known_elements() * w.known_elements() / std::max(first_extent(w), 1.0);
}

double product_flops(const Call& call) {
  const bool transposed = CallAttrs(call).flag("trans_a");
  return 2 * call.outputs.at(0).shape.known_elements() * extent(call.in(0), transposed ? 1 : 0);
}

double recurrent_flops(const Call& call) {
  const double rows = call.in(0).shape.known_elements() / std::max(extent(call.in(0), 0), 1.0);
  return 2 * rows * (call.in(1).shape.known_elements() + call.in(2).shape.known_elements());
}

double selective_scan_flops(const Call& call) {
  return 16 * call.outputs.at(0).shape.known_elements() * extent(call.in(2), 0);
}

double attention_flops(const Call& call) {
  const AttentionExtents e = attention_extents(call);
  return 2 * e.scores() * (e.size + e.value_size);
}

double attention_bytes(const Call& call) {
  const AttentionExtents e = attention_extents(call);
  const double passes =
      3 + static_cast<double>(CallAttrs(call).integer("has_mask") + 2 * CallAttrs(call).integer("nan_guard"));
  const double operands = e.batch * e.heads * (e.queries * (e.size + e.value_size) + e.keys * (e.size + e.value_size));
  return 8 * (passes * e.scores() + operands);
}

}  // namespace modelflow::ops
