// Rotary position embedding in its spellings -> modelflow.Rotary: rotate_half over x as a whole (Llama, GPT-NeoX),
// neighbours as pairs (GPT-J), the turned halves written out, and the standard RotaryEmbedding.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/fuse/attention_heads.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/last_axis.h"
#include "passes/fuse/split_products.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// What was found: x [.., sequence, size] turned by the angles.
struct Turn {
  Value *x = nullptr, *cos = nullptr, *sin = nullptr;
  bool interleaved = false, half_width = false, partial = false;
  std::int64_t covered = 0;
};

/// The factor beside `x` in a product.
Value* factor_of(const Value* product, const Value* x) {
  const Node* node = made_by(product, "Mul");
  if (!node || (node->input(0) != x && node->input(1) != x)) return nullptr;
  return node->input(node->input(0) == x ? 1 : 0);
}

/// x * cos + crossed(x) * sin.
std::optional<Turn> read_whole(const Node& add) {
  for (const std::size_t i : {0, 1}) {
    const Node *straight = made_by(add.input(i), "Mul"), *across = made_by(add.input(1 - i), "Mul");
    if (!straight || !across) continue;
    for (const std::size_t j : {0, 1}) {
      const std::optional<Crossed> crossed = read_crossed(*across->input(j));
      Value* cos = crossed ? factor_of(add.input(i), crossed->x) : nullptr;
      if (!cos) continue;
      return Turn{crossed->x, cos, across->input(1 - j), crossed->interleaved, false, false, crossed->covered};
    }
  }
  return {};
}

/// first * cos - second * sin beside second * cos + first * sin.
std::optional<Turn> read_pairs(const Value& real, const Value& imaginary) {
  const Node *difference = made_by(&real, "Sub"), *sum = made_by(&imaginary, "Add");
  const Node* first_cos = difference ? made_by(difference->input(0), "Mul") : nullptr;
  if (!first_cos || !sum) return {};
  for (const std::size_t i : {0, 1}) {
    Value *first = first_cos->input(i), *cos = first_cos->input(1 - i);
    const std::optional<LastAxisPart> a = read_part(*first);
    if (!a || a->start != 0 || a->step > 2) continue;
    for (const std::size_t j : {0, 1}) {
      Value* sin = factor_of(sum->input(j), first);
      Value* second = factor_of(sum->input(1 - j), cos);
      if (!sin || !second || factor_of(difference->input(1), second) != sin) continue;
      const std::optional<LastAxisPart> b = read_part(*second);
      const std::int64_t apart = a->step == 2 ? 1 : a->length;
      if (!b || b->x != a->x || b->step != a->step || b->length != a->length || b->start != apart) continue;
      return Turn{a->x, cos, sin, a->step == 2, true, false, 2 * a->length};
    }
  }
  return {};
}

/// Nothing but the rest of x from `covered` on.
bool is_rest(const Value& value, const Value& x, std::int64_t covered) {
  const std::optional<LastAxisPart> part = read_part(value);
  return part && part->x == &x && part->step == 1 && part->start == covered &&
         x.shape().back().number() == covered + part->length;
}

/// Real and imaginary parts side by side, and perhaps what is not turned.
std::optional<Turn> read_joined(const Node& concat) {
  const std::size_t count = concat.inputs().size();
  if (!joins_last_axis(concat) || count < 2 || count > 3) return {};
  std::optional<Turn> turn = read_pairs(*concat.input(0), *concat.input(1));
  if (!turn || turn->interleaved) return {};
  turn->partial = count == 3;
  if (turn->partial && !is_rest(*concat.input(2), *turn->x, turn->covered)) return {};
  return turn;
}

/// The same with neighbours as pairs: stacked behind each other, then flattened.
std::optional<Turn> read_stacked(const Node& reshape) {
  const std::optional<std::pair<Value*, Value*>> columns = read_stack(*reshape.output());
  std::optional<Turn> turn = columns ? read_pairs(*columns->first, *columns->second) : std::nullopt;
  return turn && turn->interleaved ? turn : std::nullopt;
}

class Fusing {
 public:
  Fusing(Graph& graph, Context& context, Extents& extents) : graph_(graph), context_(context), extents_(extents) {}

  Verdict formula(Node& found) {
    std::optional<Turn> turn;
    if (found.is("Add")) turn = read_whole(found);
    if (found.is("Concat")) turn = read_joined(found);
    if (found.is("Reshape")) turn = read_stacked(found);
    if (!turn) return no("");
    Node* root = &found;
    const std::optional<LastAxisPart> part = read_part(*turn->x);
    Node* join = turn->partial ? nullptr : only_reader(*found.output());
    if (part && part->start == 0 && part->step == 1 && part->length == turn->covered && join &&
        joins_last_axis(*join) && join->inputs().size() == 2 && join->input(0) == found.output() &&
        is_rest(*join->input(1), *part->x, part->length)) {
      root = join;
      turn->x = part->x;
      turn->partial = true;
    }
    if (!turn->partial && turn->x->shape().back().number() != turn->covered) return no("a part of it is left out");
    return build(*turn, *root);
  }

  /// RotaryEmbedding of opset 23.
  Verdict standard(Node& node) {
    Value& x = *node.input(0);
    const std::size_t rank = rank_of(&x).value_or(0);
    if (rank != 3 && rank != 4) return no("its rank is unknown", x.name());
    Turn turn{.x = &x, .interleaved = node.attrs.integer("interleaved") != 0, .half_width = true};
    const std::int64_t part = node.attrs.integer("rotary_embedding_dim");
    turn.partial = part != 0;
    Build build(graph_, node, context_);
    const auto angles = [&](Value* cache) {
      if (Value* ids = node.input(3)) cache = &build.op("Gather", {cache, ids}, {{"axis", std::int64_t{0}}});
      return &build.op("Unsqueeze", {cache, &build.constant(tensor_of({1}), "axes")});
    };
    turn.cos = angles(node.input(1));
    turn.sin = angles(node.input(2));
    heads_ = rank == 3 ? node.attrs.integer("num_heads") : 0;
    if (rank == 3 && heads_ < 1) return no("it does not say how many heads there are");
    turn.covered = part != 0 ? part : x.shape().back().number().value_or(0) / std::max<std::int64_t>(heads_, 1);
    if (turn.covered < 1 || turn.covered % 2 != 0) return no("what it turns is not known to be pairs", x.name());
    Verdict verdict = this->build(turn, node);
    heads_ = 0;
    return verdict;
  }

 private:
  /// The angles do not enlarge x.
  Verdict fits(const Turn& turn) {
    const Shape x = extents_.of(*turn.x);
    for (const Value* angles : {turn.cos, turn.sin}) {
      const Shape shape = extents_.of(*angles);
      if (!shape.has_rank() || shape.rank() < 1 || shape.rank() > 4) return no("is of another rank", angles->name());
      for (std::size_t i = 0; heads_ == 0 && i + 1 < shape.rank(); ++i)
        if (!(shape[i].number() == 1) && !(shape[i] == x[4 - shape.rank() + i]))
          return no("may enlarge what it turns", angles->name());
      // One number would be repeated for all elements.
      const std::int64_t width = turn.covered / (turn.half_width ? 2 : 1);
      if (shape.back().number() != width)
        return no("is not known to have " + std::to_string(width) + " numbers", angles->name());
    }
    return yes();
  }

  /// The heads of x where they lie in rows [batch, sequence, heads * size], all of them; null when nowhere.
  static std::optional<Heads> rows_of(Value& x) {
    for (Heads& heads : read_heads(x, false))
      if (heads.form == Heads::Form::bsh && heads.whole() && heads.group == 1 && !heads.joined()) return heads;
    return {};
  }

  /// x, of a projection of its own where it was a part of a packed one: rows are read in place then.
  Value& unpacked(Value& x) {
    const Use use = x.uses().front();
    return split_packed(read_heads(x, false), context_) ? *use.node->input(use.index) : x;
  }

  Verdict build(const Turn& turn, Node& root) {
    if (context_.model.opset() < 13) return no("the opset is below 13");
    if (heads_ == 0 && rank_of(turn.x) != 4) return no("it is not of rank 4", turn.x->name());
    if (turn.x->dtype() != DType::f32) return no("not float32", turn.x->name());
    if (Verdict v = fits(turn); !v) return v;
    Attrs attrs;
    attrs.set("interleaved", turn.interleaved ? 1 : 0).set("half_width", turn.half_width ? 1 : 0);
    attrs.set("partial", turn.partial ? 1 : 0);
    Value& x = heads_ == 0 ? unpacked(*turn.x) : *turn.x;
    const std::optional<Heads> rows = heads_ == 0 ? rows_of(x) : std::nullopt;
    const bool flat = heads_ > 0 || rows;
    const std::int64_t heads = rows ? rows->heads : std::max<std::int64_t>(heads_, 1);
    attrs.set("num_heads", heads).set("x_layout", flat ? "BSH" : "BNSH");
    Node* fused = make_fused(graph_, context_, "rotary", "modelflow.Rotary",
                             {rows ? rows->value : &x, turn.cos, turn.sin}, std::move(attrs), root);
    if (!fused) return no("");
    Value* y = fused->output();
    if (rows) y = &heads_in(*y, *rows, root);
    extents_.forget(*root.output());
    graph_.replace(*root.output(), *y);
    context_.hit("rotary");
    return yes();
  }

  /// [batch, sequence, heads * size] -> [batch, heads, sequence, size], multiplied now by what stood in front (queries
  /// of ESM): attention takes it from here.
  Value& heads_in(Value& rows, const Heads& heads, Node& before) {
    Build build(graph_, before, context_);
    const Tensor shape = tensor_of({0, 0, heads.heads, heads.size.value()});
    Value& split = build.op("Reshape", {&rows, &build.constant(shape, "shape")});
    Value& turned = build.op("Transpose", {&split}, {{"perm", Ints{0, 2, 1, 3}}});
    return heads.factor == 1 ? turned
                             : build.op("Mul", {&turned, &build.constant(Tensor::scalar(heads.factor), "scale")});
  }

  Graph& graph_;
  Context& context_;
  Extents& extents_;
  std::int64_t heads_ = 0;  ///< of x in rows, as the standard op says it
};

int run(Graph& graph, Context& context) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    for (const char* op : {"Add", "Concat", "Reshape", "RotaryEmbedding"})
      if (node->is(op) && node->output() && node->input(0)) nodes.push_back(node.get());
  Extents extents;
  int changes = 0;
  for (Node* node : nodes) {
    if (node->output()->uses().empty() && !node->output()->is_graph_output()) continue;
    Fusing fusing(graph, context, extents);
    const Verdict verdict = node->is("RotaryEmbedding") ? fusing.standard(*node) : fusing.formula(*node);
    if (!verdict && !verdict.reason.empty()) context.miss("rotary", node, verdict.reason);
    changes += verdict.ok;
  }
  graph.prune();
  return changes;
}

}  // namespace

Pass fuse_rotary() {
  return {.name = "fuse-rotary",
          .doc = "Rotary position embedding, whole or partial, of halves or neighbours -> modelflow.Rotary",
          .run = run};
}

}  // namespace modelflow::passes
