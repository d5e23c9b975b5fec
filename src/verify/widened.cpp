// Casts around nodes of a reference.
#include "src/verify/widened.h"

#include <algorithm>
#include <vector>

#include "modelflow/pass.h"
#include "src/verify/open_results.h"

namespace modelflow {
namespace {

using IsOne = std::function<bool(const Node&)>;

/// How many there were.
std::size_t apply(Graph& graph, const IsOne& is_one, const std::function<void(Node&)>& make_exact) {
  std::size_t inside = 0;
  std::vector<Node*> found;
  for (const auto& node : graph.nodes()) {
    const Value* x = node->input(0);
    if (is_one(*node) && x && x->dtype() == DType::f32 && node->output()) found.push_back(node.get());
    for (Graph* inner : node->subgraphs()) inside += apply(*inner, is_one, make_exact);
  }
  for (Node* node : found) make_exact(*node);
  return found.size() + inside;
}

}  // namespace

Value& cast_to(Graph& graph, Value& value, DType type, Node* before) {
  Node& node = graph.add("Cast", {&value}, {.before = before, .attrs = {{"to", static_cast<std::int64_t>(type)}}});
  node.output()->type = Type::tensor(type, value.shape());
  return *node.output();
}

void widen(Node& node, std::initializer_list<std::size_t> inputs) {
  Graph& graph = node.graph();
  for (const std::size_t i : inputs)
    if (Value* input = node.input(i)) graph.set_input(node, i, &cast_to(graph, *input, DType::f64, &node));
  Node& wide = graph.add(node.op(), node.inputs(), {.before = &node, .attrs = node.attrs});
  wide.output()->type = Type::tensor(DType::f64, node.output()->shape());
  graph.replace(*node.output(), cast_to(graph, *wide.output(), DType::f32, &node));
  graph.erase(node);
}

std::optional<Model> with_exact(const Model& model, const IsOne& is_one, const std::function<void(Node&)>& make_exact) {
  if (!any_node(model.graph(), is_one)) return {};
  Model exact = model;
  infer_types(exact);  // float32 or not
  if (apply(exact.graph(), is_one, make_exact) == 0) return {};
  return exact;
}

}  // namespace modelflow
