// The fused op Attention: its attributes, the extents of its operands, and its shape rule.
#include <cmath>
#include <limits>
#include <optional>

#include "backends/call_attrs.h"
#include "backends/ops/attention_attrs.h"
#include "backends/ops/broadcast.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/words.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

using Layout = AttentionAttrs::Layout;

Layout layout_of(const CallAttrs& attrs, std::string_view name) {
  return word(attrs, name, {"BSH", "BNSH"}) == "BSH" ? Layout::bsh : Layout::bnsh;
}

}  // namespace

AttentionAttrs::AttentionAttrs(const CallAttrs& attrs)
    : heads(attrs.integer("num_heads")),
      kv_heads(attrs.integer("kv_heads")),
      scale(attrs.number("scale")),
      softcap(attrs.number("softcap")),
      causal(attrs.flag("causal")),
      has_mask(attrs.flag("has_mask")),
      nan_guard(attrs.flag("nan_guard")),
      packed(attrs.flag("packed")),
      causal_number(attrs.number("causal_number")),
      causal_adds(attrs.flag("causal_adds")),
      causal_first(attrs.flag("causal_first")),
      boolean_mask(attrs.flag("boolean_mask")),
      mask_true(attrs.number("mask_true")),
      mask_false(attrs.number("mask_false")),
      true_replaces(word(attrs, "replaces", {"none", "true", "false"}) == "true"),
      false_replaces(attrs.text("replaces") == "false"),
      has_bias(attrs.flag("has_bias")),
      bias_last(attrs.flag("bias_last")),
      has_grid(attrs.flag("has_grid")),
      windows(attrs.flag("windows")),
      head_dim(attrs.integer("head_dim")),
      value_dim(attrs.integer("value_dim")),
      q(layout_of(attrs, "q_layout")),
      k(layout_of(attrs, "k_layout")),
      v(layout_of(attrs, "v_layout")),
      y(layout_of(attrs, "y_layout")) {
  if (head_dim < 0 || value_dim < 0) throw Error(ErrorKind::invalid_input, "the size of a head is negative");
  if (!(causal_number < std::numeric_limits<float>::infinity()))
    throw Error(ErrorKind::invalid_input, "causal_number is no number to hide by");
  if (has_bias && !(has_mask && boolean_mask && !windows))
    throw Error(ErrorKind::invalid_input, "a bias is for beside a boolean mask that is not of windows");
  if (has_grid && causal) throw Error(ErrorKind::invalid_input, "a causal mask hides no keys of a grid");
  if (!std::isfinite(softcap)) throw Error(ErrorKind::invalid_input, "softcap is not finite");
  if (heads < 1 || heads > kMostHeads || kv_heads < 1 || heads % kv_heads != 0)
    throw Error(ErrorKind::invalid_input, std::to_string(heads) + " query heads cannot share " +
                                              std::to_string(kv_heads) + " heads of keys and values");
}

namespace {

/// Takes over what is known; false when both are known and differ.
bool merge(Dim& dim, const Dim& found) {
  if (dim.known() && found.known() && !(dim == found)) return false;
  if (!dim.known() && !found.unknown() && (dim.unknown() || found.known())) dim = found;
  return true;
}

/// One batch serves all batches, one query all rows of a mask.
bool join(Dim& dim, const Dim& found) {
  const std::optional<Dim> both = broadcast(dim, found);
  if (both) dim = *both;
  return both.has_value();
}

/// One of q, k and v.
Verdict read_heads(const Operand& x, Layout layout, std::int64_t heads, Dim& batch, Dim& sequence, Dim& depth) {
  if (!x.shape.has_rank()) return join(batch, Dim()) ? yes() : no("batch differs", x.name);
  const bool flat = layout == Layout::bsh;
  if (x.shape.rank() != (flat ? 3u : 4u)) return no(flat ? "is not of rank 3" : "is not of rank 4", x.name);
  if (!flat && x.shape[1].known() && !(x.shape[1] == Dim(heads)))
    return no("has " + x.shape[1].str() + " heads, not " + std::to_string(heads), x.name);
  const Dim found = flat ? x.shape[2].divided_by(Dim(heads)) : x.shape[3];
  if (flat && x.shape[2].known() && found.unknown())
    return no(x.shape[2].str() + " channels do not divide into " + std::to_string(heads) + " heads", x.name);
  if (!join(batch, x.shape[0]))
    return no("has " + x.shape[0].str() + " batches, the operands before it " + batch.str(), x.name);
  if (!merge(sequence, x.shape[flat ? 1 : 2])) return no("sequence length differs", x.name);
  return merge(depth, found) ? yes() : no("head size differs", x.name);
}

/// A mask, or the bias beside it, may have more batches than q, k and v, and more rows than one query.
Verdict read_mask(const Operand& mask, const AttentionAttrs& attention, AttentionDims& dims) {
  if (!mask.shape.has_rank()) return yes();
  const std::size_t rank = mask.shape.rank();
  if (rank < 2 || rank > 4) return no("the mask is not of rank 2 to 4", mask.name);
  if (attention.windows && rank != 4) return no("the mask of windows is not of rank 4", mask.name);
  if (rank == 4 && !attention.windows && !join(dims.batch, mask.shape[0]))
    return no("the mask has " + mask.shape[0].str() + " batches, the scores " + dims.batch.str(), mask.name);
  if (!attention.causal && !join(dims.queries, mask.shape[rank - 2]))
    return no("the mask has " + mask.shape[rank - 2].str() + " rows for " + dims.queries.str(), mask.name);
  const Dim full[] = {dims.batch, Dim(attention.heads), dims.queries, dims.keys};
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim &dim = mask.shape[i], &wanted = full[4 - rank + i];
    const bool repeats = attention.windows && i == 0 && dim.known() && dim.value() > 0 && wanted.known() &&
                         wanted.value() % dim.value() == 0;
    if (dim.known() && dim.value() != 1 && wanted.known() && !(dim == wanted) && !repeats)
      return no("the mask " + mask.shape.str() + " does not broadcast", mask.name);
  }
  return yes();
}

/// [batch, heads, queries, rows] and [batch, heads, queries, columns] of the grid in which the keys lie.
Verdict read_grid(const Call& call, const AttentionAttrs& attention, const AttentionDims& dims) {
  Dim sides[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const Operand& side = call.in(attention.grid_index() + i);
    if (!side.shape.has_rank()) continue;
    if (side.shape.rank() != 4) return no("is not of rank 4", side.name);
    const Dim wanted[] = {dims.batch, Dim(attention.heads), dims.queries};
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (side.shape[axis].known() && wanted[axis].known() && !(side.shape[axis] == wanted[axis]))
        return no("is " + side.shape.str() + " and does not fit the scores", side.name);
    sides[i] = side.shape[3];
  }
  if (sides[0].known() && sides[1].known() && dims.keys.known() && !(sides[0] * sides[1] == dims.keys))
    return no("the grid has " + (sides[0] * sides[1]).str() + " places for " + dims.keys.str() + " keys");
  return yes();
}

}  // namespace

Verdict read_dims(const Call& call, const AttentionAttrs& attention, AttentionDims& dims) {
  dims.batch = 1;
  if (attention.packed) {
    const std::int64_t all = attention.heads + 2 * attention.kv_heads;
    if (Verdict v = read_heads(call.in(0), Layout::bsh, all, dims.batch, dims.queries, dims.head_dim); !v) return v;
    dims.keys = dims.queries;
    dims.value_dim = dims.head_dim;
  } else {
    const auto read = [&](std::size_t i, Layout layout, std::int64_t heads, Dim& sequence, Dim& depth) {
      return read_heads(call.in(i), layout, heads, dims.batch, sequence, depth);
    };
    if (Verdict v = read(0, attention.q, attention.heads, dims.queries, dims.head_dim); !v) return v;
    if (Verdict v = read(1, attention.k, attention.kv_heads, dims.keys, dims.head_dim); !v) return v;
    if (Verdict v = read(2, attention.v, attention.kv_heads, dims.keys, dims.value_dim); !v) return v;
  }
  if (attention.has_mask)
    if (Verdict v = read_mask(call.in(attention.mask_index()), attention, dims); !v) return v;
  if (attention.has_bias)
    if (Verdict v = read_mask(call.in(attention.bias_index()), attention, dims); !v) return v;
  return attention.has_grid ? read_grid(call, attention, dims) : yes();
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const AttentionAttrs attention(call);
  std::vector<std::string> names = {"q", "k", "v"};
  if (attention.packed) names = {"qkv"};
  if (attention.has_mask) names.emplace_back("mask");
  if (attention.has_bias) names.emplace_back("bias");
  if (attention.has_grid) names.insert(names.end(), {"grid_rows", "grid_columns"});
  return names;
}

std::vector<std::string> attributes(const Call& call, int) {
  const AttentionAttrs attention(call);
  std::vector<std::string> names = {"num_heads", "scale"};
  if (attention.softcap != 0) names.emplace_back("softcap");
  if (attention.packed || attention.kv_heads != attention.heads) names.emplace_back("kv_heads");
  if (attention.has_mask && attention.boolean_mask) names.insert(names.end(), {"mask_true", "mask_false"});
  if (attention.causal && std::isfinite(attention.causal_number)) names.emplace_back("causal_number");
  if (attention.head_dim != 0) names.emplace_back("head_dim");
  if (attention.value_dim != 0) names.emplace_back("value_dim");
  return names;
}

}  // namespace

Attrs attention_sizes(const Call& call) {
  const AttentionAttrs attention(call);
  AttentionDims dims;
  Attrs attrs;
  if (!read_dims(call, attention, dims)) return attrs;
  const bool flat_result = attention.y == Layout::bsh;
  const bool heads = attention.packed || attention.q == Layout::bsh || attention.k == Layout::bsh;
  const bool values = !attention.packed && (attention.v == Layout::bsh || flat_result);
  if (heads && dims.head_dim.known()) attrs.set("head_dim", dims.head_dim.value());
  if (values && dims.value_dim.known()) attrs.set("value_dim", dims.value_dim.value());
  return attrs;
}

namespace {

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<AttentionAttrs> attention = read_attrs<AttentionAttrs>(call, why);
  if (!attention) return why;
  AttentionDims dims;
  if (Verdict v = read_dims(call, *attention, dims); !v) return v;
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  const Dim heads(attention->heads);
  call.outputs[0].shape = attention->y == Layout::bsh ? Shape({dims.batch, dims.queries, dims.value_dim * heads})
                                                      : Shape({dims.batch, heads, dims.queries, dims.value_dim});
  for (const auto& [name, value] : attention_sizes(call)) call.attrs.set(name, value);
  return yes();
}

}  // namespace

Attrs attention_defaults() {
  return {{"num_heads", std::int64_t{1}},
          {"kv_heads", std::int64_t{1}},
          {"scale", 1.0f},
          {"softcap", 0.0f},
          {"causal", std::int64_t{0}},
          {"causal_number", -std::numeric_limits<float>::infinity()},
          {"causal_adds", std::int64_t{0}},
          {"causal_first", std::int64_t{0}},
          {"has_mask", std::int64_t{0}},
          {"nan_guard", std::int64_t{0}},
          {"packed", std::int64_t{0}},
          {"boolean_mask", std::int64_t{0}},
          {"mask_true", 0.0f},
          {"mask_false", 0.0f},
          {"replaces", std::string("none")},
          {"has_bias", std::int64_t{0}},
          {"bias_last", std::int64_t{0}},
          {"has_grid", std::int64_t{0}},
          {"windows", std::int64_t{0}},
          {"head_dim", std::int64_t{0}},
          {"value_dim", std::int64_t{0}},
          {"q_layout", std::string("BSH")},
          {"k_layout", std::string("BSH")},
          {"v_layout", std::string("BSH")},
          {"y_layout", std::string("BSH")}};
}

extern const FusedOp attention_op = {
    .kind = "Attention",
    .doc =
        "softmax(scale * Q K^T + mask) V per head, from separate or packed projections, heads shared or not. A mask "
        "holds numbers, or flags for one of two numbers, one of which may stand in place of the score; softcap c bends "
        "scores to c * tanh(scores / c); keys that lie in a grid may have a number for their row and one for their "
        "column.",
    .names = 4,
    .min_inputs = 1,
    .max_inputs = 7,
    // The second is the keys or, behind packed operands, the mask, which is float32 or boolean.
    .input_types = {DType::f32, DType::undefined, DType::f32, DType::undefined, DType::f32},
    .body = attention_body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = attention_samples,
    .defaults = attention_defaults(),
    .family = Family::attention,
    .flops = attention_flops,
    .plain_bytes = attention_bytes,
};

}  // namespace modelflow::ops
