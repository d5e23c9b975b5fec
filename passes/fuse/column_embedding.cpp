// Rows of tables, each named by a column of one matrix of ids, side by side (categorical features: entity embeddings,
// DLRM, TabNet) -> modelflow.ColumnEmbedding: two nodes for each feature otherwise, and more where ids arrive as
// floats.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/last_axis.h"
#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// A column of a matrix: [batch] or, `apart`, [batch, 1].
struct Column {
  Value* of = nullptr;
  std::int64_t number = 0;
  DType type = DType::undefined;  ///< that a Cast gave it; undefined: none did
  bool apart = false;
  bool goes_with(const Column& other) const { return of == other.of && type == other.type; }
};

/// Gather of one column.
std::optional<Column> gathered(const Value& value) {
  const Node* node = made_by(&value, "Gather");
  const Tensor* index = node ? node->input(1)->constant() : nullptr;
  if (!index || index->elements() != 1 || index->rank() > 1 || rank_of(node->input(0)) != 2) return {};
  const std::int64_t axis = node->attrs.integer("axis", 0), number = const_ints(node->input(1))->front();
  const std::optional<std::int64_t> all = node->input(0)->shape()[1].number();
  if ((axis != 1 && axis != -1) || (number < 0 && !all)) return {};
  return Column{node->input(0), number < 0 ? number + *all : number, DType::undefined, index->rank() == 1};
}

std::optional<Column> read_column(Value& ids) {
  Value* value = &ids;
  DType type = DType::undefined;
  bool squeezed = false;
  for (const Node* node = value->producer(); node; node = value->producer()) {
    if (node->is("Cast") && type == DType::undefined && node->input(0)->dtype() != DType::string)
      type = value->dtype();
    else if (node->is("Squeeze") && !squeezed && unit_axes(*node) == Ints{1} && rank_of(node->input(0)) == 2)
      squeezed = true;
    else
      break;
    value = node->input(0);
  }
  std::optional<Column> column = gathered(*value);
  if (const std::optional<LastAxisPart> part = column ? std::nullopt : read_part(*value))
    if (part->length == 1 && rank_of(part->x) == 2) column = Column{part->x, part->start, DType::undefined, true};
  if (!column || (squeezed && !column->apart)) return {};
  column->type = type;
  column->apart &= !squeezed;
  return column;
}

/// Rows of a table that a column names: [batch, width] or, where the Concat is of rank 3, [batch, 1, width].
struct Lookup {
  Value* table;
  Column column;
};

std::optional<Lookup> read_lookup(Value& value, const Graph& graph, std::size_t rank) {
  Value* rows = &value;
  bool apart = false;
  if (const Node* node = made_by(rows, "Unsqueeze"); node && unit_axes(*node) == Ints{1} && only_reader(*rows)) {
    apart = true;
    rows = node->input(0);
  }
  const Node* gather = made_by(rows, "Gather");
  if (!gather || &gather->graph() != &graph || !only_reader(*rows) || gather->attrs.integer("axis", 0) != 0) return {};
  Value* table = gather->input(0);
  if (rank_of(table) != 2 || table->dtype() != DType::f32) return {};
  const std::optional<Column> column = read_column(*gather->input(1));
  if (!column || (column->apart && apart) || (column->apart || apart) != (rank == 3)) return {};
  return Lookup{table, *column};
}

class Fusion {
 public:
  Fusion(Node& concat, std::size_t rank, Context& context)
      : concat_(concat), rank_(rank), build_(concat.graph(), concat, context), context_(context) {
    const std::int64_t axis = concat.attrs.integer("axis", 1);
    axis_ = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  }

  /// Each run of lookups by columns of the same matrix becomes one operand.
  bool run() {
    if (axis_ == 0) return false;
    std::vector<Lookup> lookups;
    for (Value* input : concat_.inputs()) {
      const std::optional<Lookup> lookup = read_lookup(*input, concat_.graph(), rank_);
      const bool goes_on = lookup && !lookups.empty() && lookup->column.goes_with(lookups.front().column);
      if (!lookups.empty() && (!goes_on || lookups.size() == kMost)) close(lookups);
      if (lookup)
        lookups.push_back(*lookup);
      else
        operands_.push_back(input);
      if (lookup) left_.push_back(input);
    }
    close(lookups);
    if (!changed_) return false;
    Graph& graph = concat_.graph();
    Value& joined = operands_.size() == 1 ? *operands_[0] : build_.op("Concat", operands_, concat_.attrs);
    graph.replace(*concat_.output(), joined);
    graph.erase(concat_);
    return true;
  }

 private:
  void close(std::vector<Lookup>& lookups) {
    Value* made = lookups.size() > 1 ? rows_of(lookups) : nullptr;
    changed_ |= made != nullptr;
    if (made)
      operands_.push_back(made);
    else
      operands_.insert(operands_.end(), left_.begin(), left_.end());
    lookups.clear();
    left_.clear();
  }

  /// [batch, width of all], in the rank of the Concat; null where no kernel takes it.
  Value* rows_of(const std::vector<Lookup>& lookups) {
    const Column& first = lookups.front().column;
    Value* ids = first.of;
    if (first.type != DType::undefined)
      ids = &build_.op("Cast", {ids}, {{"to", static_cast<std::int64_t>(first.type)}});
    std::vector<Value*> inputs = {ids};
    Ints columns;
    std::int64_t width = 0;
    for (const Lookup& lookup : lookups) {
      inputs.push_back(lookup.table);
      columns.push_back(lookup.column.number);
      width += lookup.table->shape()[1].number().value_or(0);
      if (rank_ == 3 && !lookup.table->shape()[1].known()) return nullptr;
    }
    const Node* made = make_fused(concat_.graph(), context_, kRule, "modelflow.ColumnEmbedding", std::move(inputs),
                                  {{"columns", columns}}, concat_);
    if (!made) return nullptr;
    context_.hit(kRule);
    if (rank_ == 2) return made->output();
    const std::int64_t rows = axis_ == 1 ? std::ssize(lookups) : 1;
    return &build_.op("Reshape", {made->output(), &build_.constant(tensor_of({0, rows, width / rows}), "rows")});
  }

  static constexpr const char* kRule = "column-embedding";
  static constexpr std::size_t kMost = 256;  ///< tables of one node

  Node& concat_;
  std::size_t rank_;
  std::int64_t axis_;
  Build build_;
  Context& context_;
  std::vector<Value*> operands_;
  std::vector<Value*> left_;  ///< operands of the run that is open
  bool changed_ = false;
};

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* node : nodes_of(graph, {"Concat"})) {
    const std::size_t rank = rank_of(node->output()).value_or(0);
    if ((rank == 2 || rank == 3) && node->output()->dtype() == DType::f32)
      changes += Fusion(*node, rank, context).run();
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_column_embedding() {
  return {.name = "fuse-column-embedding",
          .doc = "Rows of tables that columns of ids name, side by side -> modelflow.ColumnEmbedding",
          .run = run};
}

}  // namespace modelflow::passes
