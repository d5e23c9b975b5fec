// Rows of tables by ids, summed, and the LayerNorm behind them (BERT, GPT-2, RoBERTa, ...) -> modelflow.Embedding.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "modelflow/modelflow.h"
#include "modelflow/shape_values.h"
#include "passes/fuse/attention_scores.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::size_t kMostTables = 3;

/// One operand of the sum: the rows of a table that ids name, its first ones (what the function body says of rows in
/// order), or a constant, which is a table whose rows are taken in order.
struct Part {
  Node* gather = nullptr;
  Node* first_rows = nullptr;
  Value* constant = nullptr;
  Value* table() const { return gather ? gather->input(0) : first_rows->input(0); }
};

struct Sum {
  std::vector<Part> parts;
  std::vector<Node*> nodes;  ///< all that goes, last first
  std::size_t gathers = 0;
};

/// Gather(table, ids) whose rows nobody else reads.
bool is_lookup(const Node& node) {
  const Value &table = *node.input(0), &ids = *node.input(1);
  return node.is("Gather") && node.attrs.integer("axis") == 0 && rank_of(&table) == 2 && table.dtype() == DType::f32 &&
         rank_of(&ids) && (ids.dtype() == DType::i64 || ids.dtype() == DType::i32);
}

/// Slice(table, 0, count, 0).
bool takes_first_rows(const Node& node, const Dim& width) {
  const Tensor* table = node.is("Slice") && node.inputs().size() > 3 ? node.input(0)->constant() : nullptr;
  return table && table->rank() == 2 && table->dtype() == DType::f32 && width.number() == table->dims()[1] &&
         const_ints(node.input(1)) == Ints{0} && const_ints(node.input(3)) == Ints{0} &&
         setting(node, "", 4, {1}) == Ints{1};
}

/// The operands of nested sums; false when one is no row of a table. `width` is that of all rows.
bool collect(Value& value, const Graph& graph, const Dim& width, Sum& sum) {
  const std::optional<std::size_t> rank = rank_of(&value);
  if (const Tensor* tensor = value.constant()) {
    if (!rank || *rank == 0 || tensor->dtype() != DType::f32 || tensor->elements() == 0) return false;
    sum.parts.push_back({nullptr, nullptr, &value});
    return tensor->dims().back() == width.value() && sum.parts.size() <= kMostTables;
  }
  Node* node = value.producer();
  if (!node || &node->graph() != &graph || !node->domain().empty()) return false;
  if (is_lookup(*node) && node->input(0)->shape().back() == width) {
    sum.parts.push_back({node});
    sum.nodes.push_back(node);
    ++sum.gathers;
    return sum.parts.size() <= kMostTables;
  }
  if (takes_first_rows(*node, width)) {
    sum.parts.push_back({nullptr, node});
    sum.nodes.push_back(node);
    ++sum.gathers;
    return sum.parts.size() <= kMostTables;
  }
  if (!node->is("Add")) return false;
  sum.nodes.push_back(node);
  for (Value* input : node->inputs())
    if ((!input->constant() && !only_reader(*input)) || !collect(*input, graph, width, sum)) return false;
  return true;
}

/// 0, 1, 2, ... up to `length` along the last axis, which is the only one: a Range, or the first of a constant that
/// has at least `rows`.
bool counts_to(const Value& ids, const Dim& length, std::int64_t rows, Extents& extents, ShapeValues& contents) {
  const Shape shape = extents.of(ids);
  if (!shape.has_rank() || shape.rank() == 0 || ids.constant()) return false;
  for (std::size_t axis = 0; axis + 1 < shape.rank(); ++axis)
    if (shape[axis].number() != 1) return false;
  if (const Node* range = range_behind(ids))
    return const_number(range->input(0)) == 0.0 && const_number(range->input(2)) == 1.0 && shape.back() == length;
  const Node* slice = ids.producer();
  if (!slice || !slice->is("Slice") || slice->inputs().size() < 4) return false;
  const std::optional<Ints> all = const_ints(slice->input(0)), steps = setting(*slice, "", 4, {1});
  const std::optional<Ints> axes = const_ints(slice->input(3));
  const DimList* end = contents.of(slice->input(2));
  if (!all || !axes || axes->size() != 1 ||
      positive(*axes, std::ssize(shape.dims())) != Ints{std::ssize(shape.dims()) - 1})
    return false;
  if (const_ints(slice->input(1)) != Ints{0} || steps != Ints{1} || !end || end->size() != 1 || !((*end)[0] == length))
    return false;
  for (std::size_t i = 0; i < all->size(); ++i)
    if ((*all)[i] != static_cast<std::int64_t>(i)) return false;
  return std::ssize(*all) >= rows;
}

class Fusion {
 public:
  /// `gone` learns which values are no more.
  Fusion(Value& rows, Context& context, Extents& extents, std::unordered_set<const Value*>& gone)
      : rows_(rows),
        first_(*rows.producer()),
        context_(context),
        extents_(extents),
        gone_(gone),
        norm_(norm_behind(rows)) {}

  bool run() {
    const Shape shape = extents_.of(rows_);
    if (!shape.has_rank() || shape.rank() == 0 || !shape.back().known()) return false;
    if (!collect(rows_, first_.graph(), shape.back(), sum_) || sum_.gathers == 0) return false;
    if (sum_.gathers < 2 && !norm_) return false;
    return replace(shape);
  }

 private:
  /// The LayerNorm that reads the rows, by constants: it will stand where the sum stands.
  static Node* norm_behind(const Value& rows) {
    for (const Use& use : rows.uses()) {
      Node& node = *use.node;
      const bool plain = node.is("modelflow.LayerNorm") && node.attrs.integer("axis") == -1 &&
                         node.attrs.integer("rms") == 0 && node.attrs.text("residual") == "none";
      if (plain && use.index == 0 && &node.graph() == &rows.graph() && node.input(1)->is_initializer() &&
          node.input(2)->is_initializer())
        return &node;
    }
    return nullptr;
  }

  /// Ids without an Expand, where the others already have the extents of the result.
  Value& lean_ids(Value& ids, const Shape& shape) {
    const Node* expand = ids.producer();
    if (!expand || !expand->is("Expand")) return ids;
    for (const Part& part : sum_.parts) {
      const Node* others = part.gather ? part.gather->input(1)->producer() : nullptr;
      if (!part.gather || (others && others->is("Expand"))) continue;
      if (extents_.of(*part.gather->output()) == shape) return *expand->input(0);
    }
    return ids;
  }

  /// [..., width] -> ids in order, and the rows.
  void add_constant(const Tensor& tensor, Graph& graph, std::vector<Value*>& inputs) {
    Dims dims = tensor.dims();
    const std::int64_t width = dims.back();
    dims.pop_back();
    Ints order(static_cast<std::size_t>(element_count(dims)));
    std::iota(order.begin(), order.end(), 0);
    inputs.push_back(&graph.add_constant(tensor_of(order).reshaped(dims), "rows"));
    inputs.push_back(&graph.add_constant(tensor.reshaped({element_count(dims), width}), "table"));
  }

  /// Of the axes that its ids, or the constant, bring to the result, without the width.
  static std::size_t rank_beside(const Part& part) {
    if (part.gather) return rank_of(part.gather->input(1)).value_or(0);
    return part.constant ? rank_of(part.constant).value_or(1) - 1 : 1;
  }

  /// Its ids have the last axis of the result, but for the width.
  bool goes_along(const Part& part, const Shape& shape) {
    if (!part.gather || shape.rank() < 2) return false;
    const Shape ids = extents_.of(lean_ids(*part.gather->input(1), shape));
    return ids.has_rank() && ids.rank() > 0 && ids.back() == shape[shape.rank() - 2];
  }

  /// Whether the rows in order that it takes are those of another part's ids along their last axis: they need no ids
  /// then, whatever else is added to them.
  bool in_order(const Part& part, const Shape& shape) {
    const std::optional<std::int64_t> rows = part.constant ? std::nullopt : part.table()->shape()[0].number();
    if (!rows || *rows < 2 || shape.rank() < 2) return false;
    const Dim& length = shape[shape.rank() - 2];
    const auto along = [&](const Part& other) { return &other != &part && goes_along(other, shape); };
    if (length.number() == 1 || std::ranges::none_of(sum_.parts, along)) return false;
    ShapeValues contents(context_.model.ir_version);
    if (!part.gather) {
      const DimList* count = contents.of(part.first_rows->input(2));
      return count && count->size() == 1 && (*count)[0] == length;
    }
    const Value& ids = lean_ids(*part.gather->input(1), shape);
    const bool as_many = std::ranges::any_of(sum_.parts, [&](const Part& other) {
      return &other != &part && rank_beside(other) >= rank_of(&ids).value_or(shape.rank());
    });
    return as_many && counts_to(ids, length, *rows, extents_, contents);
  }

  bool replace(const Shape& shape) {
    Graph& graph = first_.graph();
    std::vector<Value*> inputs;
    const auto ordered = std::ranges::find_if(sum_.parts, [&](const Part& part) { return in_order(part, shape); });
    const bool has_order = ordered != sum_.parts.end();
    if (has_order) {  // along the last axis of the first ids
      std::rotate(ordered, ordered + 1, sum_.parts.end());
      const auto longest = std::ranges::find_if(sum_.parts, [&](const Part& part) { return goes_along(part, shape); });
      if (longest >= sum_.parts.end() - 1) return false;
      std::rotate(sum_.parts.begin(), longest, longest + 1);
    }
    if (std::any_of(sum_.parts.begin(), sum_.parts.end() - (has_order ? 1 : 0),
                    [](const Part& p) { return p.first_rows; }))
      return false;
    for (const Part& part : sum_.parts) {
      if (part.constant) {
        add_constant(*part.constant->constant(), graph, inputs);
        continue;
      }
      if (!has_order || &part != &sum_.parts.back()) inputs.push_back(&lean_ids(*part.gather->input(1), shape));
      inputs.push_back(part.table());
    }
    const bool keep = norm_ && !only_reader(rows_);
    Attrs attrs{{"tables", static_cast<std::int64_t>(sum_.parts.size())}, {"axis", std::int64_t{-1}}};
    attrs.set("norm", norm_ ? 1 : 0).set("keep_sum", keep ? 1 : 0).set("in_order", has_order ? 1 : 0);
    attrs.set("epsilon", Attr(norm_ ? norm_->attrs.number("epsilon") : 0.0F));
    if (norm_) inputs.insert(inputs.end(), {norm_->input(1), norm_->input(2)});
    Node* made = make_fused(graph, context_, "embedding", "modelflow.Embedding", std::move(inputs), std::move(attrs),
                            first_, keep ? 2 : 1);
    if (!made) return false;
    if (norm_) {
      made->name = norm_->name;
      extents_.forget(*norm_->output());
      graph.replace(*norm_->output(), *made->output());
      graph.erase(*norm_);
    }
    if (keep || !norm_) graph.replace(rows_, *made->output(keep ? 1 : 0));
    for (Node* node : sum_.nodes) {
      gone_.insert(node->output());
      extents_.forget(*node->output());
      graph.erase(*node);
    }
    context_.hit("embedding");
    return true;
  }

  Value& rows_;
  Node& first_;
  Context& context_;
  Extents& extents_;
  std::unordered_set<const Value*>& gone_;
  Node* norm_;
  Sum sum_;
};

int run(Graph& graph, Context& context) {
  std::vector<Value*> results;  // sums before their parts
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if ((*node)->is("Add") || ((*node)->is("Gather") && is_lookup(**node))) results.push_back((*node)->output());
  }
  if (std::none_of(results.begin(), results.end(), [](const Value* v) { return v->producer()->is("Gather"); }))
    return 0;
  Extents extents;
  int changes = 0;
  std::unordered_set<const Value*> gone;
  for (Value* rows : results)
    if (!gone.contains(rows)) changes += Fusion(*rows, context, extents, gone).run();
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_embedding() {
  return {.name = "fuse-embedding",
          .doc = "Rows of tables by ids, summed, and the LayerNorm behind them -> modelflow.Embedding",
          .run = run};
}

}  // namespace modelflow::passes
