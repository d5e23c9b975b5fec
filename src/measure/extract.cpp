// Parts of a model as models of their own, and fused nodes as their bodies.
#include "src/measure/extract.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "modelflow/function.h"
#include "modelflow/modelflow.h"
#include "src/emit/body.h"

namespace modelflow {
namespace {

using Mapping = std::unordered_map<const Value*, Value*>;

/// Values around a graph that it reads, in the graphs inside of it as well.
void list_captured(const Graph& graph, const Graph& around, std::vector<Value*>& captured) {
  const auto see = [&](Value* value) {
    if (value && &value->graph() == &around) captured.push_back(value);
  };
  for (const auto& node : graph.nodes()) {
    for (Value* input : node->inputs()) see(input);
    for (const Graph* inner : node->subgraphs()) list_captured(*inner, around, captured);
  }
  for (Value* output : graph.outputs()) see(output);
}

std::vector<Value*> captured_by(const Node& node) {
  std::vector<Value*> captured;
  for (const Graph* inner : node.subgraphs()) list_captured(*inner, node.graph(), captured);
  return captured;
}

/// The same node in another graph; outputs get new names and the old types. What its subgraphs read around them is in
/// `known`.
Node& copy_node(const Node& node, Graph& to, std::vector<Value*> inputs, const Mapping& known) {
  Node& copy =
      to.add(node.domain() + ":" + node.op(), std::move(inputs), {.outputs = node.outputs().size(), .name = node.name});
  for (const auto& [name, attr] : node.attrs) {
    Attr own = attr;
    if (auto* one = std::get_if<Subgraph>(&own)) *one = (*one)->clone(&copy, known);
    if (auto* many = std::get_if<std::vector<Subgraph>>(&own))
      for (Subgraph& graph : *many) graph = graph->clone(&copy, known);
    copy.attrs.set(name, std::move(own));
  }
  for (std::size_t i = 0; i < node.outputs().size(); ++i)
    if (node.output(i)) copy.output(i)->type = node.output(i)->type;
  return copy;
}

bool is_read_outside(const Value& value, const std::set<const Node*>& inside) {
  return value.is_graph_output() || std::any_of(value.uses().begin(), value.uses().end(),
                                                [&](const Use& use) { return !inside.contains(use.node); });
}

}  // namespace

Model extract(const Model& model, const std::vector<const Node*>& nodes) {
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
    if (value->constant())
      place->second = &graph.add_constant(*value->constant(), value->name());
    else
      place->second = &graph.add_input(value->name(), value->type);
    return place->second;
  };
  const std::set<const Node*> inside(nodes.begin(), nodes.end());
  for (const Node* node : nodes) {
    std::vector<Value*> inputs;
    for (Value* input : node->inputs()) inputs.push_back(bring(input));
    for (Value* value : captured_by(*node)) (void)bring(value);
    const Node& copy = copy_node(*node, graph, std::move(inputs), known);
    for (std::size_t i = 0; i < node->outputs().size(); ++i)
      if (Value* output = node->output(i)) {
        if (copy.output(i)->name() != output->name()) graph.rename(*copy.output(i), output->name());
        known[output] = copy.output(i);
      }
  }
  for (const Node* node : nodes)
    for (Value* output : node->outputs())
      if (output && is_read_outside(*output, inside)) graph.add_output(*known.at(output));
  const std::set<const Function*> called = called_functions(model, graph);
  for (const Function& function : model.functions)
    if (called.contains(&function)) part.functions.push_back(function);
  return part;
}

void revert(Model& model, Node& fused) {
  const FusedOp* op = find_fused_op(fused.op());
  if (!op) throw Error(ErrorKind::unsupported, "no fused op of this build").within(fused.label());
  settle(fused);
  const Call call = call_of(fused);
  const auto opset = model.opset();
  inline_call(fused, make_function(call.op, body_text(*op, call, static_cast<int>(opset)), opset));
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

namespace {

/// Bodies say Sum of a residual where a normalization behind it would make ONNX Runtime join an Add with that;
/// elsewhere what comes back is the Add that models have.
void write_sums_as_adds(Graph& graph, const std::set<const Node*>& before) {
  for (const auto& node : graph.nodes()) {
    for (Graph* inner : node->subgraphs()) write_sums_as_adds(*inner, before);
    const auto normalizes = [](const Use& use) { return use.node->is("LayerNormalization"); };
    if (node->is("Sum") && node->inputs().size() == 2 && !before.contains(node.get()) &&
        std::ranges::none_of(node->output()->uses(), normalizes))
      graph.set_op(*node, "Add");
  }
}

void list_sums(const Graph& graph, std::set<const Node*>& list) {
  for (const auto& node : graph.nodes()) {
    if (node->is("Sum")) list.insert(node.get());
    for (const Graph* inner : node->subgraphs()) list_sums(*inner, list);
  }
}

}  // namespace

void revert(Model& model, const std::vector<std::string>& names) {
  const std::set<std::string> wanted(names.begin(), names.end());
  std::set<const Node*> before;
  list_sums(model.graph(), before);
  for (Node* node : fused_nodes(model.graph()))
    if (wanted.contains(node->name)) revert(model, *node);
  write_sums_as_adds(model.graph(), before);
  infer_types(model);
}

namespace {

/// A name that no other node has, from its own or its output's.
void name_anew(Node& node, std::set<std::string>& taken) {
  const Value* first = node.output();
  const std::string stem = !node.name.empty() ? node.name : first ? first->name() : node.op();
  node.name = stem;
  for (int i = 1; !taken.insert(node.name).second; ++i) node.name = stem + "_" + std::to_string(i);
}

}  // namespace

void name_fused_nodes(Model& model) {
  std::set<std::string> taken;
  for (Node* node : fused_nodes(model.graph())) name_anew(*node, taken);
}

void name_nodes(Model& model) {
  std::set<std::string> taken;
  for (const auto& node : model.graph().nodes()) name_anew(*node, taken);
}

}  // namespace modelflow
