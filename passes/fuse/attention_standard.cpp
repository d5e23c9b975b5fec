// The standard Attention. Earlier keys and values become a Concat beside the fused op, whose results are the present
// ones; what the op says of lengths and of causality beyond a triangle at the first key becomes flags.
#include "passes/fuse/attention_standard.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "modelflow/modelflow.h"
#include "passes/fuse/attention_build.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// Places of inputs and outputs.
enum Place : std::size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };
constexpr std::size_t kScores = 3;

bool is_read(const Value* value) { return value && (!value->uses().empty() || value->is_graph_output()); }

/// Whether the fused op means all that the node says: an attribute of a later opset must not get lost.
Verdict check(const Node& node) {
  static constexpr std::string_view kKnown[] = {
      "is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softmax_precision", "softcap"};
  for (const auto& [name, value] : node.attrs)
    if (std::ranges::find(kKnown, name) == std::end(kKnown)) return no("it has " + name);
  if (node.output(kScores) && is_read(node.output(kScores))) return no("the scores are read", node.output(3)->name());
  const std::int64_t precision = node.attrs.integer("softmax_precision", 1);
  if (precision != 1 && precision != 11) return no("its softmax is computed in 16 bits");
  if (!node.input(kPastKey) != !node.input(kPastValue)) return no("it has past keys or past values alone");
  if (node.input(kPastKey) && node.input(kLengths)) return no("it has past keys and lengths of keys");
  if (node.attrs.number("softcap") < 0) return no("softcap is negative");
  return yes();
}

/// An operand: heads as a product would read them, or [batch, sequence, heads * size].
std::vector<Heads> operand_heads(Value& value, std::int64_t heads) {
  if (rank_of(&value) == 4) return read_heads(value, false);
  if (rank_of(&value) != 3) return {};
  const Dim& width = value.shape().back();
  if (heads < 1 || !width.known() || width.value() > Heads::kWidest || width.value() % heads != 0) return {};
  Heads whole(Heads::Form::bsh);
  whole.value = &value;
  whole.shape = value.shape();
  whole.heads = heads;
  whole.size = width.value() / heads;
  whole.columns.resize(static_cast<std::size_t>(width.value()));
  std::iota(whole.columns.begin(), whole.columns.end(), 0);
  return {whole};
}

class Standard {
 public:
  Standard(Node& node, Context& context) : node_(node), context_(context), build_(node.graph(), node, context) {}

  Verdict run() {
    if (Verdict v = check(node_); !v) return v;
    const std::int64_t heads = node_.attrs.integer("kv_num_heads");
    // Where a mask or a length leaves nothing of a row the standard op gives 0, as its node tests say.
    Attention found{.end = &node_,
                    .nodes = {&node_},
                    .nan_guard = node_.input(kMask) || node_.input(kLengths),
                    .flat = rank_of(node_.input(kQuery)) == 3};
    found.q = operand_heads(*node_.input(kQuery), node_.attrs.integer("q_num_heads"));
    for (const std::size_t i : {kKey, kValue})
      if (Verdict v = join(i); !v) return v;
    found.k = operand_heads(*all_[kKey], heads);
    found.v = operand_heads(*all_[kValue], heads);
    const Dim size = found.q.empty() ? Dim() : found.q.front().size;
    if (!node_.attrs.has("scale") && !size.known()) return no("the size of a head is unknown", node_.input(0)->name());
    found.masking = [&](std::int64_t, Masking& masking) {
      masking.scale =
          node_.attrs.has("scale") ? node_.attrs.number("scale") : 1 / std::sqrt(static_cast<float>(size.value()));
      masking.softcap = node_.attrs.number("softcap");
      return mask(masking);
    };
    if (Verdict v = build_attention(std::move(found), context_); !v) return v;
    for (const std::size_t i : {kKey, kValue})
      if (node_.output(i) && is_read(node_.output(i))) node_.graph().replace(*node_.output(i), *all_[i]);
    return yes();
  }

 private:
  Value& op(const char* type, std::vector<Value*> inputs, Attrs attrs = {}) {
    return build_.op(type, std::move(inputs), std::move(attrs));
  }
  Value& ints(const Ints& list) { return build_.constant(tensor_of(list), "axes"); }

  /// All keys or all values that the op reads: the earlier ones in front of those that come in, as the present ones
  /// lie.
  Verdict join(std::size_t i) {
    all_[i] = node_.input(i);
    Value* past = node_.input(i - kKey + kPastKey);
    if (!past && !(node_.output(i) && is_read(node_.output(i)))) return yes();
    const std::optional<std::size_t> rank = rank_of(all_[i]);
    if (!rank) return no("its rank is unknown", all_[i]->name());
    if (*rank == 3) {
      const std::vector<Heads> heads = operand_heads(*all_[i], node_.attrs.integer("kv_num_heads"));
      if (heads.empty()) return no("keys and values are no heads of a known form", all_[i]->name());
      Value& split = op("Reshape", {all_[i], &ints({0, 0, heads.front().heads, heads.front().size.value()})});
      all_[i] = &op("Transpose", {&split}, {{"perm", Ints{0, 2, 1, 3}}});
    }
    if (past) all_[i] = &op("Concat", {past, all_[i]}, {{"axis", std::int64_t{2}}});
    return yes();
  }

  Verdict mask(Masking& masking) {
    Value* mask = node_.input(kMask);
    const std::size_t rank = mask ? rank_of(mask).value_or(0) : 2;
    if (rank < 2 || rank > 4) return no("the mask is not of rank 2 to 4", mask->name());
    if (mask && mask->shape().back().known() && keys().known() && !(mask->shape().back() == keys()))
      return no("the mask has not all keys", mask->name());
    const bool causal = node_.attrs.integer("is_causal") != 0;
    masking.causal.on = causal && !node_.input(kPastKey) && !node_.input(kLengths);
    const float nothing = -std::numeric_limits<float>::infinity();
    if (Value* seen = allowed(causal); seen && !mask)
      mask = seen;
    else if (seen && mask->dtype() == DType::boolean)
      mask = &op("And", {mask, seen});
    else if (seen)
      mask = &op("Where", {seen, mask, &build_.constant(Tensor::scalar(nothing), "nothing")});
    if (mask && mask->dtype() == DType::boolean) {
      masking.flags = mask;
      masking.flag_false = nothing;
    } else if (mask) {
      if (mask->dtype() != DType::f32) return no("the mask is not float32", mask->name());
      masking.numbers = mask;
    }
    return yes();
  }

  const Dim& keys() const { return all_[kKey]->shape()[all_[kKey]->shape().rank() - 2]; }
  const Dim& queries() const {
    const Shape& shape = node_.input(kQuery)->shape();
    return shape[shape.rank() - 2];
  }

  /// Which keys a query sees beyond what a triangle at the first key says: [queries, keys] or [batch, 1, queries or 1,
  /// keys]; null: all.
  Value* allowed(bool causal) {
    Value *past = node_.input(kPastKey), *lengths = node_.input(kLengths);
    if (!lengths && (!causal || !past || queries().number() == 1)) return nullptr;
    Value& count = op("Range", {&integer(0), &extent(*all_[kKey]), &integer(1)});
    Value* each = lengths ? &op("Reshape", {lengths, &ints({-1, 1, 1, 1})}) : nullptr;
    if (!causal) return &op("Less", {&count, each});
    // Key j <= query i + keys in front of the first query.
    Value& rows =
        op("Unsqueeze", {&op("Range", {&integer(0), &extent(*node_.input(kQuery)), &integer(1)}), &ints({1})});
    Value& before = lengths ? op("Sub", {each, &extent(*node_.input(kQuery))}) : extent(*past);
    return &op("LessOrEqual", {&count, &op("Add", {&rows, &before})});
  }

  Value& integer(std::int64_t number) { return build_.constant(Tensor::scalar(number), "number"); }

  /// The last but one, as a scalar: that of the sequence, in either form.
  Value& extent(Value& value) {
    const std::int64_t axis = static_cast<std::int64_t>(value.shape().rank()) == 3 ? 1 : 2;
    return op("Squeeze", {&op("Shape", {&value}, {{"start", axis}, {"end", axis + 1}})});
  }

  Node& node_;
  Context& context_;
  Build build_;
  Value* all_[3] = {};  ///< by place: keys and values
};

}  // namespace

Verdict fuse_standard_attention(Node& node, Context& context) { return Standard(node, context).run(); }

}  // namespace modelflow::passes
