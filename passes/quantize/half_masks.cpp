// Masks that stay finite in floats of 16 bits.
#include "passes/quantize/half_masks.h"

#include <algorithm>
#include <limits>

#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/quantize/half_places.h"
#include "src/core/half.h"

namespace modelflow::passes {
namespace {

bool is_softmax(const Node& node) { return node.is("Softmax") || node.is("LogSoftmax"); }

/// The operand of a fused op that is added to scores.
bool hides(const Node& node, std::size_t input) {
  if (place_of(node, "mask") == input) return true;
  return computes(node, Family::attention) && place_of(node, "bias") == input;
}

bool only_moves(const Node& node) {
  return is_view(node) || elementwise(node) || node.is("Expand") || node.is("Slice") || node.is("Concat");
}

}  // namespace

HalfMasks::HalfMasks(const Graph& graph, Context& context, DType half) : context_(context), half_(half) {
  find_products(graph);
  find_readers(graph);
}

void HalfMasks::find_products(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    const auto is_product = [&](const Value* value) { return products_.contains(value); };
    if (multiplies(*node) || std::ranges::any_of(node->inputs(), is_product))
      for (const Value* output : node->outputs()) products_.insert(output);
  }
}

/// Whether what this node gives is, sooner or later, added to scores or one itself.
bool HalfMasks::leads_to_scores(const Node& node) const {
  return std::ranges::any_of(node.outputs(), [&](const Value* output) {
    return output && std::ranges::any_of(output->uses(), [&](const Use& use) {
             return is_softmax(*use.node) || hides(*use.node, use.index) || before_.contains(use.node);
           });
  });
}

void HalfMasks::find_readers(const Graph& graph) {
  for (auto it = graph.nodes().rbegin(); it != graph.nodes().rend(); ++it) {
    const Node& node = **it;
    const bool leads = only_moves(node) && leads_to_scores(node);
    if (leads) before_.insert(&node);
    for (std::size_t i = 0; i < node.inputs().size(); ++i)
      if (node.input(i) && !products_.contains(node.input(i)) && (leads || hides(node, i))) places_.emplace(&node, i);
  }
}

Value& HalfMasks::bounded(Value& value, Node& reader, std::size_t input) {
  return places_.contains({&reader, input}) ? bounded(value, reader) : value;
}

/// The larger of the number and the bound; with the largest number added, only what is infinite lies below that. Half
/// of the range is left for what is added to the bound in the smaller type.
Value& HalfMasks::bounded(Value& value, Node& reader) {
  const auto [place, fresh] = bounded_.try_emplace(&value, &value);
  if (!fresh) return *place->second;
  Graph& graph = reader.graph();
  Value& least = graph.add_constant(Tensor::scalar(-largest(half_) / 2), "least");
  Value& most = graph.add_constant(Tensor::scalar(std::numeric_limits<float>::max()), "most");
  Node* made = make_fused(graph, context_, "to-half", "modelflow.Pointwise", {&value, &least, &most},
                          {{"program", "Max x0 x1; Add x0 x2; Min t0 t1"}}, reader);
  if (!made) return value;
  made->name.clear();
  return *(place->second = made->output());
}

}  // namespace modelflow::passes
