// A product whose columns go separate ways becomes one for each of them, which saves the copies of Split and lets each
// take what follows it: gates and values of gated linear units (arXiv 2002.05202) that were packed into one layer,
// queries, keys and values that no attention took together.
#include "passes/fuse/split_products.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "passes/fuse/attention_heads.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/last_axis.h"
#include "passes/fuse/projection.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/imported_weights.h"

namespace modelflow::passes {
namespace {

/// Columns of a part: fewer would leave the widest tiles of products unused, which costs more than the copies of Split.
constexpr std::size_t kWorthwhile = 64;
/// What a node costs beside its work. Where the whole product takes less, nodes are counted: of two parts there are no
/// more of them than before, and each may take what follows.
constexpr double kNodeSeconds = 1e-6;

/// A part of a product as its readers take it.
struct Part {
  Value* value;
  Ints columns;
  std::int64_t heads = 0, size = 0;  ///< 0: [..., columns]
  Ints perm;                         ///< how its axes are turned then; empty: they are not
};

class Parts {
 public:
  Parts(Value& y, std::size_t least, Context& context)
      : y_(y),
        activation_(activation_behind(y)),
        top_(activation_ ? *activation_->output() : y),
        least_(least),
        context_(context) {}

  bool split() {
    const std::optional<Projection> product = read_projection(y_);
    if (!product || imported_weights(*product->product->input(1), product->columns_axis()) ||
        !(add_turned() || collect(top_)) || !are_apart())
      return false;
    const std::string name = product->product->name.empty() ? "part" : product->product->name + "_part";
    for (const Part& part : parts_) {
      Build build(y_.graph(), *y_.producer(), context_);
      Value* made = &product_of(*product->x, {{&*product, &part.columns}}, name, build);
      if (activation_) made = &activated(*made, build);
      if (part.heads)
        made = &build.op("Reshape", {made, &build.constant(tensor_of({0, 0, part.heads, part.size}), "heads")});
      if (!part.perm.empty()) made = &build.op("Transpose", {made}, {{"perm", part.perm}});
      y_.graph().replace(*part.value, *made);
    }
    return true;
  }

 private:
  /// An activation that alone reads the product, as gMLP has it in front of the Split.
  static Node* activation_behind(const Value& y) {
    Node* reader = only_reader(y);
    return reader && reader->input(0) == &y && activation_of(*reader) ? reader : nullptr;
  }

  Value& activated(Value& part, Build& build) const {
    std::vector<Value*> inputs = activation_->inputs();
    inputs[0] = &part;
    const std::string domain = activation_->domain().empty() ? "" : activation_->domain() + ".";
    return build.op(domain + activation_->op(), std::move(inputs), activation_->attrs);
  }

  /// The parts that are read on each way from `value`; false where it is read in another way.
  bool collect(Value& value) {
    if (value.is_graph_output()) return false;
    if (value.uses().empty() || (&value != &top_ && (add_columns(value) || add_heads(value)))) return true;
    const bool moved = std::ranges::all_of(value.uses(), [&](const Use& use) {
      return use.index == 0 && &use.node->graph() == &y_.graph() && moves(*use.node);
    });
    if (!moved) return false;
    std::set<const Node*> seen;
    for (const Use& use : value.uses())
      if (seen.insert(use.node).second)
        for (Value* output : use.node->outputs())
          if (output && !collect(*output)) return false;
    return true;
  }

  static bool moves(const Node& node) {
    return is_view(node) || node.is("Gather") || node.is("Slice") || node.is("Split");
  }

  bool add_columns(Value& value) {
    const std::optional<LastAxisPart> part = read_part(value);
    if (!part || part->x != &top_ || part->step != 1) return false;
    add_run(value, part->start, part->length, {});
    return true;
  }

  /// Neighbouring columns, the axes turned then or not.
  void add_run(Value& value, std::int64_t first, std::int64_t count, const Ints& perm) {
    Ints columns(static_cast<std::size_t>(count));
    std::iota(columns.begin(), columns.end(), first);
    parts_.push_back({&value, std::move(columns), 0, 0, perm});
  }

  /// The parts of a Split behind a Transpose that alone reads the product (Mamba, in front of its convolution).
  bool add_turned() {
    const Node* turn = only_reader(top_);
    const Node* split = turn && turn->is("Transpose") ? only_reader(*turn->output()) : nullptr;
    if (!split || !split->is("Split")) return false;
    const Ints perm = turn->attrs.ints("perm");
    const auto rank = static_cast<std::int64_t>(perm.size());
    const std::int64_t axis = split->attrs.integer("axis"), from_first = axis < 0 ? axis + rank : axis;
    if (from_first < 0 || from_first >= rank || perm[static_cast<std::size_t>(from_first)] + 1 != rank) return false;
    std::int64_t next = 0;
    for (Value* output : split->outputs()) {
      if (!output || rank_of(output) != perm.size()) return false;
      const Dim& extent = output->shape()[static_cast<std::size_t>(from_first)];
      if (!extent.known()) return false;
      add_run(*output, next, extent.value(), perm);
      next += extent.value();
    }
    return true;
  }

  bool add_heads(Value& value) {
    if (rank_of(&value) != 4) return false;  // with images and windows apart
    for (const bool transposed : {false, true})
      for (const Heads& heads : read_heads(value, transposed)) {
        const bool plain = heads.form == Heads::Form::bsh && heads.group == 1 && heads.factor == 1 && !heads.together &&
                           !heads.joined();
        if (heads.value != &top_ || !plain || heads.columns.empty() || !heads.size.known()) continue;
        const Ints perm = transposed ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3};
        parts_.push_back({&value, heads.columns, heads.heads, heads.size.value(), perm});
        return true;
      }
    return false;
  }

  /// At least two, and no column is computed twice.
  bool are_apart() const {
    Ints all;
    for (const Part& part : parts_) {
      if (part.columns.size() < least_) return false;
      all.insert(all.end(), part.columns.begin(), part.columns.end());
    }
    std::ranges::sort(all);
    return parts_.size() > 1 && std::ranges::adjacent_find(all) == all.end();
  }

  Value& y_;
  Node* activation_;
  Value& top_;  ///< what is taken apart: y, or what the activation makes of it
  std::size_t least_;
  Context& context_;
  std::vector<Part> parts_;
};

/// Of each part, where `y` is a product.
std::size_t least_columns(const Value& y, TypicalSizes& sizes, const Target& target) {
  const std::optional<Projection> product = read_projection(y);
  if (!product) return kWorthwhile;
  const double depth = static_cast<double>(product->channels()), columns = static_cast<double>(product->columns());
  const double seconds =
      std::max(target.compute(2 * sizes.of(y).known_elements() * depth), target.stream(4 * depth * columns));
  if (seconds >= kNodeSeconds) return kWorthwhile;
  return std::min(kWorthwhile, static_cast<std::size_t>(product->columns() / 3 + 1));  // of which there are two at most
}

int run(Graph& graph, Context& context) {
  TypicalSizes sizes(context);
  int changes = 0;
  for (Node* node : nodes_of(graph, {"MatMul", "Gemm", "Add"})) {
    Value& y = *node->output();
    changes += split_product(y, least_columns(y, sizes, context.target), context);
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

bool split_product(Value& y, std::size_t least, Context& context) {
  if (!Parts(y, least, context).split()) return false;
  context.hit("split-product");
  return true;
}

bool split_packed(const std::vector<Heads>& ways, Context& context) {
  return std::ranges::any_of(ways, [&](const Heads& heads) {
    return heads.form == Heads::Form::bsh && !heads.whole() && split_product(*heads.value, 1, context);
  });
}

Pass split_products() {
  return {
      .name = "split-products",
      .doc = "A product whose columns go separate ways (Split, Slice, heads told apart) -> a product for each of them",
      .run = run};
}

}  // namespace modelflow::passes
