// Changes of a model that change nothing of what it computes.
#include "tests/fuzz/metamorphic.h"

#include <algorithm>
#include <set>

#include "modelflow/pass.h"
#include "tests/all_graphs.h"
#include "tests/fuzz/change.h"
#include "tests/fuzz/elements.h"
#include "tests/fuzz/wrap.h"

namespace modelflow::fuzz {
namespace {

/// Any order in which every node stands behind those that it reads.
void shuffle_nodes(Graph& graph, Dice& dice) {
  std::vector<Node*> left, placed;
  for (const auto& node : graph.nodes()) left.push_back(node.get());
  std::set<const Node*> done;
  const auto ready = [&](const Node* node) {
    const auto reads = [&](const Graph& of, const auto& self) -> bool {  // what its subgraphs read of this graph, too
      return std::ranges::all_of(of.nodes(), [&](const auto& inner) {
        return std::ranges::all_of(inner->inputs(),
                                   [&](const Value* input) {
                                     return !input || !input->producer() || &input->graph() != &graph ||
                                            done.contains(input->producer());
                                   }) &&
               std::ranges::all_of(inner->subgraphs(), [&](const Graph* deeper) { return self(*deeper, self); });
      });
    };
    return std::ranges::all_of(node->inputs(),
                               [&](const Value* input) {
                                 return !input || !input->producer() || &input->producer()->graph() != &graph ||
                                        done.contains(input->producer());
                               }) &&
           std::ranges::all_of(node->subgraphs(), [&](const Graph* inner) { return reads(*inner, reads); });
  };
  while (!left.empty()) {
    std::vector<Node*> candidates;
    std::ranges::copy_if(left, std::back_inserter(candidates), ready);
    if (candidates.empty()) return;  // nothing has been moved yet
    Node* next = dice.pick(candidates);
    placed.push_back(next), done.insert(next);
    std::erase(left, next);
  }
  for (std::size_t i = placed.size() - 1; i-- > 0;) graph.move_before(*placed[i], *placed[i + 1]);
}

/// Two halves of a constant along its first axis, joined again by the model.
Value& halved(Graph& graph, const Tensor& constant, Node& reader) {
  const std::vector<double> all = constant.to_doubles();
  const std::int64_t first = constant.dims()[0] / 2;
  const auto each = static_cast<std::ptrdiff_t>(constant.elements() / constant.dims()[0]);
  const auto part = [&](std::int64_t from, std::int64_t to) {
    Dims dims = constant.dims();
    dims[0] = to - from;
    return &graph.add_constant(tensor_of(constant.dtype(), dims, {all.begin() + from * each, all.begin() + to * each}),
                               "half");
  };
  const std::vector<Value*> parts = {part(0, first), part(first, constant.dims()[0])};
  return *graph.add("Concat", parts, {.before = &reader, .attrs = {{"axis", std::int64_t{0}}}}).output();
}

void respell(Graph& graph, Dice& dice) {
  for (Value* value : graph.initializers()) {
    if (!value->constant() || value->uses().empty() || value->is_graph_output()) continue;
    const Tensor constant = *value->constant();
    const Use use = dice.pick(value->uses());
    if (&use.node->graph() != &graph || !dice.chance(0.6)) continue;
    const bool splits = constant.rank() > 0 && constant.dims()[0] > 1 && constant.elements() > 0 &&
                        (constant.dtype() == DType::f32 || constant.dtype() == DType::f64);
    Value* by = nullptr;
    if (splits && dice.chance(0.4))
      by = &halved(graph, constant, *use.node);
    else if (dice.chance(0.5))
      by = graph.add("Constant", {}, {.before = use.node, .attrs = {{"value", constant}}}).output();
    else
      by = graph.add("Identity", {value}, {.before = use.node}).output();
    graph.set_input(*use.node, use.index, by);
  }
  graph.prune();
  std::vector<Value*> values;
  for (const auto& node : graph.nodes())
    for (Value* output : node->outputs())
      if (output && !output->uses().empty() && dice.chance(0.2)) values.push_back(output);
  for (Value* value : values) {
    const Use use = dice.pick(value->uses());
    if (&use.node->graph() != &graph) continue;
    graph.set_input(*use.node, use.index, graph.add("Identity", {value}, {.before = use.node}).output());
  }
}

/// Every value that is no input or output, and every node.
void rename_all(Model& model, Dice& dice) {
  std::uint64_t next = dice.below(1000);
  for (Graph* graph : all_graphs(model)) {
    std::vector<Value*> values = graph->initializers();
    if (graph->parent()) values.insert(values.end(), graph->inputs().begin(), graph->inputs().end());
    for (const auto& node : graph->nodes()) {
      if (!node->name.empty()) node->name = "n" + std::to_string(next++);
      values.insert(values.end(), node->outputs().begin(), node->outputs().end());
    }
    for (Value* value : values) {
      if (!value || graph->pinned.contains(value->name())) continue;
      const bool faces = !graph->parent() && (value->is_graph_output() || value->is_graph_input());
      if (!faces) graph->rename(*value, graph->unique_name("v" + std::to_string((next += 1 + dice.below(5)))));
    }
  }
}

}  // namespace

std::string say_otherwise(Model& model, Dice& dice) {
  switch (dice.below(4)) {
    case 0:
      rename_all(model, dice);
      return kOtherNames;
    case 1:
      shuffle_nodes(model.graph(), dice);
      return "another order";
    case 2:
      respell(model.graph(), dice);
      return "other spellings";
    default:
      infer_types(model);
      return wrap(model, dice, true);
  }
}

}  // namespace modelflow::fuzz
