// Queries and keys that are normalized between their projection and the scores (cosine attention of Swin v2, arXiv
// 2111.09883; QK-Norm, arXiv 2010.04245) are normalized where the projection left them, so that attention reads heads
// that nothing has moved.
#include <algorithm>
#include <map>
#include <set>

#include "modelflow/pattern.h"
#include "passes/fuse/attention_heads.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/split_products.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

const Ints kHeadsFirst = {0, 2, 1, 3};  ///< [batch, sequence, heads, size] to [batch, heads, sequence, size] and back

/// Computes each row along the last axis of rank 4 from the same row.
bool reduces_rows(const Node& node) {
  if (node.outputs().size() != 1 || rank_of(node.input(0)) != 4) return false;
  const auto is_last = [](std::int64_t axis) { return axis == -1 || axis == 3; };
  if (node.is("LayerNormalization") || node.is("RMSNormalization")) return is_last(node.attrs.integer("axis", -1));
  if (computes(node, Family::layer_norm)) return node.inputs().size() <= 3 && is_last(node.attrs.integer("axis", -1));
  if (!node.domain().empty() || !node.op().starts_with("Reduce") || node.attrs.integer("keepdims", 1) != 1)
    return false;
  const std::optional<Ints> axes = setting(node, "axes", 1);
  return axes && axes->size() == 1 && is_last(axes->front());
}

/// What stands between the heads `from` and an operand of the scores, all of it computed row by row.
struct Rows {
  Value* from = nullptr;
  Value* end = nullptr;
  std::vector<Node*> nodes;  ///< in running order
};

class RowReader {
 public:
  explicit RowReader(Value& end) : end_(end) {}

  std::optional<Rows> read() {
    if (!take(end_) || !from_ || !reduces_) return {};
    for (const Node* node : nodes_)
      for (const Use& use : node->output()->uses())
        if (node->output() != &end_ && !taken_.contains(use.node)) return {};
    for (const Use& use : from_->uses())
      if (!taken_.contains(use.node)) return {};  // it would be moved all the same
    if (from_->is_graph_output() || rank_of(from_) != 4) return {};
    return Rows{from_, &end_, nodes_};
  }

 private:
  static constexpr std::size_t kMost = 32;  ///< nodes of one normalization

  bool take(Value& value) {
    Node* node = value.producer();
    const bool inner = node && &node->graph() == &end_.graph() && (&value == &end_ || !value.is_graph_output());
    const bool reduces = inner && reduces_rows(*node);
    if (!reduces && !(inner && elementwise(*node) && node->outputs().size() == 1)) return begins_at(value);
    if (taken_.contains(node)) return true;
    if (taken_.size() >= kMost) return false;
    taken_.insert(node);
    reduces_ |= reduces;
    for (Value* input : node->inputs())
      if (input && !(input->constant() ? fits(*input) : take(*input))) return false;
    nodes_.push_back(node);
    return true;
  }

  bool begins_at(Value& value) {
    if (from_ && from_ != &value) return false;
    from_ = &value;
    return &value != &end_;
  }

  /// Broadcast along the sequence or along heads, so that these may change places.
  static bool fits(const Value& constant) {
    const Shape& shape = constant.shape();
    const auto is_one = [&](std::size_t from_end) {
      return from_end > shape.rank() || shape[shape.rank() - from_end].number() == 1;
    };
    return shape.rank() <= 4 && (is_one(2) || is_one(3));
  }

  Value& end_;
  Value* from_ = nullptr;
  bool reduces_ = false;
  std::vector<Node*> nodes_;
  std::set<const Node*> taken_;
};

/// The heads as [batch, sequence, heads, size] in front of their Transpose; null where there is none.
Value* unmoved(const Value& heads) {
  const Node* node = heads.producer();
  return node && node->is("Transpose") && node->attrs.ints("perm") == kHeadsFirst ? node->input(0) : nullptr;
}

/// A constant whose axes of heads and sequence change places; one of them has extent 1.
Value& turned(Value& constant, Build& build) {
  Dims dims = constant.constant()->dims();
  if (dims.size() == 2) dims.insert(dims.begin(), 1);
  if (dims.size() < 3) return constant;
  std::swap(dims[dims.size() - 2], dims[dims.size() - 3]);
  return build.constant(constant.constant()->reshaped(dims), constant.name());
}

/// The same rows computed from `source`, then moved.
void sink_transpose(const Rows& rows, Value& source, Context& context) {
  Graph& graph = rows.end->graph();
  Build build(graph, *rows.nodes.back(), context);
  std::map<const Value*, Value*> made = {{rows.from, &source}};
  for (const Node* node : rows.nodes) {
    std::vector<Value*> inputs;
    for (Value* input : node->inputs())
      inputs.push_back(!input ? nullptr : input->constant() ? &turned(*input, build) : made.at(input));
    const std::string op = (node->domain().empty() ? "" : node->domain() + ".") + node->op();
    made[node->output()] = &build.op(op, inputs, node->attrs);
  }
  graph.replace(*rows.end, build.op("Transpose", {made.at(rows.end)}, {{"perm", kHeadsFirst}}));
}

/// One operand of the scores.
bool rewrite(Value* operand, Context& context) {
  const Node* node = operand ? operand->producer() : nullptr;
  if (node && node->is("Transpose") && node->attrs.ints("perm") == Ints{0, 1, 3, 2} && only_reader(*operand))
    operand = node->input(0);
  if (!operand) return false;
  std::optional<Rows> rows = RowReader(*operand).read();
  const bool split = rows && !unmoved(*rows->from) && split_packed(read_heads(*rows->from, false), context);
  if (split) rows = RowReader(*operand).read();
  Value* source = rows ? unmoved(*rows->from) : nullptr;
  if (!source || &source->graph() != &rows->end->graph()) return split;
  sink_transpose(*rows, *source, context);
  context.hit("normalized-heads");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* node : nodes_of(graph, {"MatMul", "Attention"})) {
    const bool scores = node->is("Attention") || (!node->input(0)->constant() && !node->input(1)->constant());
    for (const std::size_t i : {0, 1})
      if (scores && rank_of(node->input(i)) == 4) changes += rewrite(node->input(i), context);
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass normalized_heads() {
  return {.name = "normalized-heads",
          .doc =
              "Queries and keys that are normalized between projection and scores are normalized where the projection "
              "left them, and each part of a packed projection becomes a product of its own",
          .run = run};
}

}  // namespace modelflow::passes
