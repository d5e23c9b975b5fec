#include "src/measure/extract.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "modelflow/modelflow.h"
#include "src/emit/emit.h"

namespace modelflow {
namespace {

using Mapping = std::unordered_map<const Value*, Value*>;

std::string full_op(const Node& node) {
  if (node.domain().empty()) return node.op();
  return node.domain() + (node.domain() == kDomain ? "." : ":") + node.op();
}

/// The same node in another graph; outputs get new names and the old types.
Node& copy_node(const Node& node, Graph& to, std::vector<Value*> inputs, Node* before) {
  Node& copy = to.add(full_op(node), std::move(inputs),
                      {.before = before, .outputs = node.outputs().size(), .attrs = node.attrs, .name = node.name});
  for (std::size_t i = 0; i < node.outputs().size(); ++i)
    if (node.output(i)) copy.output(i)->type = node.output(i)->type;
  return copy;
}

bool is_read_outside(const Value& value, const std::set<const Node*>& inside) {
  return value.is_graph_output() || std::any_of(value.uses().begin(), value.uses().end(),
                                                [&](const Use& use) { return !inside.contains(use.node); });
}

}  // namespace

Model extract(const Model& model, const std::vector<const Node*>& nodes, Constants constants) {
  Model part;
  part.ir_version = model.ir_version;
  part.opsets = model.opsets;
  Graph& graph = part.graph();
  graph.name = "part";
  Mapping known;
  const auto bring = [&](Value* value) -> Value* {
    if (!value) return nullptr;
    const auto [place, fresh] = known.try_emplace(value, nullptr);
    if (!fresh) return place->second;
    if (value->constant() && constants == Constants::copied)
      place->second = &graph.add_constant(*value->constant(), value->name());
    else
      place->second = &graph.add_input(value->name(), value->type);
    return place->second;
  };
  const std::set<const Node*> inside(nodes.begin(), nodes.end());
  for (const Node* node : nodes) {
    std::vector<Value*> inputs;
    for (Value* input : node->inputs()) inputs.push_back(bring(input));
    const Node& copy = copy_node(*node, graph, std::move(inputs), nullptr);
    for (std::size_t i = 0; i < node->outputs().size(); ++i)
      if (Value* output = node->output(i)) {
        if (copy.output(i)->name() != output->name()) graph.rename(*copy.output(i), output->name());
        known[output] = copy.output(i);
      }
  }
  for (const Node* node : nodes)
    for (Value* output : node->outputs())
      if (output && is_read_outside(*output, inside)) graph.add_output(*known.at(output));
  return part;
}

void revert(Model& model, Node& fused) {
  Model part = extract(model, {&fused}, Constants::as_inputs);
  emit_functions(part);
  part = inline_functions(std::move(part));
  Graph& graph = fused.graph();
  Mapping known;
  for (Value* input : part.graph().inputs())
    for (Value* outer : fused.inputs())
      if (outer && outer->name() == input->name()) known[input] = outer;
  for (Value* constant : part.graph().initializers())
    if (!known.contains(constant)) known[constant] = &graph.add_constant(*constant->initializer(), constant->name());
  for (const auto& node : part.graph().nodes()) {
    std::vector<Value*> inputs;
    for (Value* input : node->inputs()) inputs.push_back(input ? known.at(input) : nullptr);
    const Node& copy = copy_node(*node, graph, std::move(inputs), &fused);
    for (std::size_t i = 0; i < node->outputs().size(); ++i)
      if (node->output(i)) known[node->output(i)] = copy.output(i);
  }
  graph.replace(*fused.output(), *known.at(part.graph().outputs().at(0)));
  graph.erase(fused);
}

std::vector<Node*> fused_nodes(Graph& graph) {
  std::vector<Node*> found;
  for (const auto& node : graph.nodes()) {
    if (node->domain() == kDomain) found.push_back(node.get());
    for (Graph* inner : node->subgraphs())
      for (Node* fused : fused_nodes(*inner)) found.push_back(fused);
  }
  return found;
}

void revert(Model& model, const std::vector<std::string>& names) {
  const std::set<std::string> wanted(names.begin(), names.end());
  for (Node* node : fused_nodes(model.graph()))
    if (wanted.contains(node->name)) revert(model, *node);
  infer_types(model);
}

void name_fused_nodes(Model& model) {
  std::set<std::string> taken;
  for (Node* node : fused_nodes(model.graph())) {
    const std::string stem = node->name.empty() ? node->output()->name() : node->name;
    node->name = stem;
    for (int i = 1; !taken.insert(node->name).second; ++i) node->name = stem + "_" + std::to_string(i);
  }
}

}  // namespace modelflow
