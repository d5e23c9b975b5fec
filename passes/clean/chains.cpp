// Two ops in a row that are one: Transposes, Reshapes, Squeeze with Unsqueeze, Casts.
#include <algorithm>
#include <array>

#include "passes/clean/clean.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

/// The permutation that two Transposes make; nothing where one does not name its own.
std::optional<Ints> perm_of_both(const Node& outer, const Node& inner) {
  const Ints first = inner.attrs.ints("perm"), second = outer.attrs.ints("perm");
  if (first.size() != second.size() || first.empty()) return {};
  Ints perm(first.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (second[i] < 0 || static_cast<std::size_t>(second[i]) >= first.size()) return {};
    perm[i] = first[static_cast<std::size_t>(second[i])];
  }
  return perm;
}

/// Transpose(Transpose(x)): one permutation.
bool merge_transposes(Graph&, Node& outer, const Node& inner) {
  const std::optional<Ints> perm = perm_of_both(outer, inner);
  if (!perm) return false;
  // Keys of attention: the product that follows swaps the last two axes for nothing.
  const auto last = static_cast<std::int64_t>(perm->size()) - 1;
  const auto innermost = [](const Node& node) { return node.attrs.ints("perm").back(); };
  if (innermost(inner) == last && innermost(outer) == last - 1 && feeds_product(*outer.output())) return false;
  outer.attrs.set("perm", *perm);
  return true;
}

/// Reshape(Reshape(x)): the first is moot unless the second copies one of its dims ("0") that x has elsewhere.
bool merge_reshapes(Graph&, Node& outer, const Node& inner) {
  if (!inner.input(0)) return false;
  if (outer.attrs.integer("allowzero") != 0) return true;
  const std::optional<Ints> target = const_ints(outer.input(1));
  if (!target) return false;
  const Value &x = *inner.input(0), &middle = *outer.input(0);
  for (std::size_t i = 0; i < target->size(); ++i) {
    if ((*target)[i] != 0) continue;
    if (!x.type.is_tensor() || !x.shape().has_rank() || !middle.type.is_tensor() || !middle.shape().has_rank())
      return false;
    if (i >= x.shape().rank() || i >= middle.shape().rank() || !(x.shape()[i] == middle.shape()[i])) return false;
  }
  return true;
}

/// The axes of a Squeeze or an Unsqueeze, ascending, each once; nothing where it names none.
std::optional<Ints> ascending_axes(const Node& view) {
  const std::optional<Ints> axes = unit_axes(view);
  return axes && !axes->empty() ? std::optional(each_once(*axes)) : std::nullopt;
}

void set_unit_axes(Graph& graph, Node& view, const Ints& axes) {
  if (view.attrs.has("axes"))
    view.attrs.set("axes", axes);
  else
    graph.set_input(view, 1, &graph.add_constant(tensor_of(axes), "axes"));
}

/// Squeeze(Squeeze(x)): one of the axes of both.
bool merge_squeezes(Graph& graph, Node& outer, const Node& inner) {
  const std::optional<Ints> first = ascending_axes(inner), second = ascending_axes(outer);
  if (!first || !second) return false;
  Ints axes = *first;
  for (std::int64_t axis : *second) {
    for (const std::int64_t gone : *first) axis += gone <= axis ? 1 : 0;
    axes.push_back(axis);
  }
  std::ranges::sort(axes);
  set_unit_axes(graph, outer, axes);
  return true;
}

/// Squeeze of Unsqueeze: of the axes that were there before, where it drops those that were added.
bool merge_squeeze_of_added(Graph& graph, Node& outer, const Node& inner) {
  const std::optional<Ints> added = ascending_axes(inner), dropped = ascending_axes(outer);
  if (!added || !dropped || *added == *dropped || !std::ranges::includes(*dropped, *added)) return false;
  Ints axes;
  for (const std::int64_t axis : *dropped)
    if (!std::ranges::binary_search(*added, axis))
      axes.push_back(axis - (std::ranges::lower_bound(*added, axis) - added->begin()));
  set_unit_axes(graph, outer, axes);
  return true;
}

/// Both go: Squeeze of Unsqueeze or the other way round on the same axes, Transpose and back.
bool undoes(const Node& outer, const Node& inner) {
  if (outer.op() == "Transpose" && inner.op() == "Transpose") {
    const std::optional<Ints> perm = perm_of_both(outer, inner);
    return perm && std::ranges::is_sorted(*perm);
  }
  const bool opposite =
      (outer.op() == "Squeeze" && inner.op() == "Unsqueeze") || (outer.op() == "Unsqueeze" && inner.op() == "Squeeze");
  const std::optional<Ints> axes = opposite ? ascending_axes(outer) : std::nullopt;
  return axes && axes == ascending_axes(inner);
}

/// Every number of type `from` is one of type `to`.
bool widens(DType from, DType to) {
  const bool wide_float = to == DType::f32 || to == DType::f64, wide_int = to == DType::i32 || to == DType::i64;
  switch (from) {
    case DType::boolean:
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16:
      return wide_float || wide_int;
    case DType::f16:
    case DType::bf16:
      return wide_float;
    case DType::i32:
      return to == DType::i64 || to == DType::f64;
    case DType::f32:
      return to == DType::f64;
    default:
      return false;
  }
}

/// Cast(Cast(x)): the first is moot when it loses nothing. Narrowing first would change the rounding, text shows the
/// type, and what an integer of another range becomes depends on whether a float stands in between: kept.
bool merge_casts(Graph&, Node& outer, const Node& inner) {
  if (!inner.output()) return false;
  const DType from = inner.input(0)->dtype(), middle = inner.output()->dtype();
  const auto to = static_cast<DType>(outer.attrs.integer("to"));
  if (!widens(from, middle) || to == DType::string) return false;
  const bool by_float = is_float(middle) && !is_float(from) && from != DType::boolean;
  const bool any_number = is_float(to) || to == DType::boolean;
  return !by_float || any_number || from == to || widens(from, to);
}

/// Concat with a Concat on the same axis among its inputs.
bool merge_concats(Graph& graph, Node& outer) {
  for (std::size_t i = 0; i < outer.inputs().size(); ++i) {
    Value* middle = outer.input(i);
    Node* inner = middle ? middle->producer() : nullptr;
    if (!inner || !inner->is("Concat") || &inner->graph() != &graph || only_reader(*middle) != &outer) continue;
    const std::optional<std::size_t> rank = rank_of(middle);
    const auto axis = [&](const Node& node) {
      return positive({node.attrs.integer("axis", 1)}, static_cast<std::int64_t>(rank.value_or(0)));
    };
    const bool same =
        inner->attrs.integer("axis", 1) == outer.attrs.integer("axis", 1) || (rank && axis(*inner) == axis(outer));
    if (!same) continue;
    std::vector<Value*> inputs = outer.inputs();
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(i));
    inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(i), inner->inputs().begin(), inner->inputs().end());
    graph.resize_inputs(outer, inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) graph.set_input(outer, k, inputs[k]);
    return true;
  }
  return false;
}

struct Chain {
  std::string_view outer, inner;
  bool (*merge)(Graph&, Node& outer, const Node& inner);  ///< true: outer may read what inner reads
};
constexpr std::array<Chain, 9> chains_of_two = {{{"Transpose", "Transpose", merge_transposes},
                                                 {"Reshape", "Reshape", merge_reshapes},
                                                 {"Reshape", "Flatten", merge_reshapes},
                                                 {"Reshape", "Squeeze", merge_reshapes},
                                                 {"Reshape", "Unsqueeze", merge_reshapes},
                                                 {"Squeeze", "Squeeze", merge_squeezes},
                                                 {"Squeeze", "Unsqueeze", merge_squeeze_of_added},
                                                 {"Cast", "Cast", merge_casts},
                                                 {"Relu", "Relu", [](Graph&, Node&, const Node&) { return true; }}}};

int merge(Graph& graph, Context& context, Node& outer) {
  if (!outer.domain().empty() || !outer.output() || !outer.input(0)) return 0;
  if (outer.op() == "Concat") {
    if (!merge_concats(graph, outer)) return 0;
    context.hit("concat-of-concat");
    return 1;
  }
  const Node* inner = outer.input(0)->producer();
  if (!inner || !inner->domain().empty() || !inner->input(0)) return 0;
  if (!outer.output()->is_graph_output() && undoes(outer, *inner)) {
    context.hit(outer.op() + "-of-" + inner->op());
    graph.replace(*outer.output(), *inner->input(0));
    return 1;
  }
  for (const Chain& chain : chains_of_two) {
    if (outer.op() != chain.outer || inner->op() != chain.inner || !chain.merge(graph, outer, *inner)) continue;
    context.hit(outer.op() + "-of-" + inner->op());
    graph.set_input(outer, 0, inner->input(0));
    return 1;
  }
  return 0;
}

}  // namespace

Pass chains() {
  return {.name = "chains",
          .doc = "Merges pairs of Transpose, Reshape, Cast, Concat, Squeeze/Unsqueeze that one node can do.",
          .run = [](Graph& graph, Context& context) {
            int changes = 0;
            for (const auto& node : graph.nodes()) changes += merge(graph, context, *node);
            if (changes) graph.prune();
            return changes;
          }};
}

}  // namespace modelflow::passes
