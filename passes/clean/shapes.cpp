// Shape arithmetic that comes out as numbers becomes constants, and Reshapes with a computed target get a constant one.
#include <algorithm>

#include "modelflow/shape_values.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

bool integral(DType dtype) { return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::boolean; }

Tensor tensor_of(DType dtype, bool scalar, const Ints& values) {
  const Dims dims = scalar ? Dims{} : Dims{static_cast<std::int64_t>(values.size())};
  if (dtype == DType::i64) return Tensor::of<std::int64_t>(dims, std::span<const std::int64_t>(values));
  return Tensor::make(dtype, dims, [&](std::byte* out) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::i32) reinterpret_cast<std::int32_t*>(out)[i] = static_cast<std::int32_t>(values[i]);
      if (dtype == DType::boolean) out[i] = std::byte{values[i] != 0};
    }
  });
}

/// Shape arithmetic that came out as numbers.
int numbers_to_constants(Graph& graph, Context& context, ShapeValues& contents) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (node->output() && !node->output()->is_graph_output() && !node->output()->uses().empty())
      nodes.push_back(node.get());
  int changes = 0;
  for (Node* node : nodes) {
    if (node->op() == "Constant") continue;
    Value& out = *node->output();
    if (!integral(out.dtype()) || !rank_of(&out)) continue;  // one of unknown rank may be a scalar or a vector
    const std::optional<Ints> numbers = contents.numbers(&out);
    if (!numbers) continue;
    graph.replace(out, graph.add_constant(tensor_of(out.dtype(), rank_of(&out) == 0, *numbers), out.name()));
    ++changes;
  }
  if (changes) context.hit("shape-to-constant", changes);
  return changes;
}

/// What the shape of the result says about element `i` of the target.
Dim inferred(const Node& node, std::size_t i, std::size_t size) {
  const Value& y = *node.output();
  if (y.is_graph_output() || !y.type.is_tensor() || !y.shape().has_rank() || y.shape().rank() != size) return {};
  return y.shape()[i];
}

/// Whether it refuses the empty batch that the computed target served: by a -1 that the model did not have, or had with
/// allowzero, where ONNX Runtime takes both.
bool fails_when_empty(const Node& node, const Ints& target, const std::vector<Dim>& wanted) {
  if (!refuses_empty(target)) return false;
  if (node.attrs.integer("allowzero") != 0) return true;
  const auto rest = std::find(target.begin(), target.end(), -1);
  return wanted[static_cast<std::size_t>(rest - target.begin())].number() != -1;
}

/// The constant that means the same for Reshape: numbers, 0 for "as the input has it", at most one -1 for the rest.
std::optional<Ints> reshape_target(const Node& node, const std::vector<Dim>& wanted) {
  const Value& x = *node.input(0);
  const bool ranked = x.type.is_tensor() && x.shape().has_rank();
  Ints target;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Dim& dim = wanted[i];
    const Dim known = inferred(node, i, wanted.size());
    // With allowzero a 0 is an empty axis, which no other number says; a copied dim is what it is either way.
    if (node.attrs.integer("allowzero") != 0 && dim.number() == 0) return std::nullopt;
    const bool copied = ranked && i < x.shape().rank() && (dim == x.shape()[i] || known == x.shape()[i]);
    if (dim.known() && dim.value() >= 0)
      target.push_back(dim.value());
    else if (known.known() && known.value() > 0)
      target.push_back(known.value());
    else
      target.push_back(copied ? 0 : -1);
  }
  return std::count(target.begin(), target.end(), -1) <= 1 ? std::optional(target) : std::nullopt;
}

int reshape_targets(Graph& graph, Context& context, ShapeValues& contents) {
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->is("Reshape") || !node->input(0) || !node->output()) continue;
    if (!node->input(1) || node->input(1)->constant()) continue;
    const std::vector<Dim>* wanted = contents.of(node->input(1));
    if (!wanted) continue;
    const std::optional<Ints> target = reshape_target(*node, *wanted);
    if (!target) {
      context.miss("reshape-target", node.get(), "more than one dim of its target is unknown");
      continue;
    }
    if (fails_when_empty(*node, *target, *wanted)) {
      context.miss("reshape-target", node.get(), "with -1 beside a copied dim it would refuse empty tensors");
      continue;
    }
    graph.set_input(*node, 1, &graph.add_constant(tensor_of(DType::i64, false, *target), node->input(1)->name()));
    node->attrs.erase("allowzero");
    context.hit("reshape-target");
    ++changes;
  }
  return changes;
}

}  // namespace

Pass fold_shapes() {
  return {.name = "fold-shapes",
          .doc = "Replaces shape arithmetic over known dims by constants, also Reshape targets with one unknown dim.",
          .run = [](Graph& graph, Context& context) {
            ShapeValues contents(context.model.ir_version);
            const int targets = reshape_targets(graph, context, contents);
            const int changes = targets + numbers_to_constants(graph, context, contents);
            if (changes) graph.prune();
            return changes;
          }};
}

}  // namespace modelflow::passes
