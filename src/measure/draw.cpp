// Nodes, their work and the memory that is held while they run.
#include "src/measure/draw.h"

#include <algorithm>
#include <map>

#include "src/graph/constant_of.h"
#include "src/measure/describe.h"
#include "src/measure/roofline.h"

namespace modelflow {
namespace {

double bytes_of(const Value& value) {
  if (constant_of(value) || !value.type.is_tensor()) return 0;
  return value.shape().known_elements() * bits(value.dtype()) / 8;
}

std::string type_of(const Value& value) {
  if (!value.type.is_tensor()) return value.type.kind == Type::Kind::other ? "no tensor" : "";
  return std::string(name(value.dtype())) + value.shape().str();
}

/// Of nodes in nested graphs: the node of this graph that they are part of.
const Node* here(const Node* node, const Graph& graph) {
  while (node && &node->graph() != &graph) node = node->graph().parent();
  return node;
}

/// By node, what is held while it runs: a value is there from the node that makes it to the last that reads it.
std::vector<double> live_bytes(const Graph& graph) {
  std::map<const Node*, std::size_t> place;
  for (const auto& node : graph.nodes()) place.emplace(node.get(), place.size());
  std::vector<double> change(place.size() + 1);
  const auto hold = [&](const Value& value, std::size_t from) {
    std::size_t last = value.is_graph_output() ? place.size() - 1 : from;
    for (const Use& use : value.uses())
      if (const auto reader = place.find(here(use.node, graph)); reader != place.end())
        last = std::max(last, reader->second);
    change[from] += bytes_of(value);
    change[last + 1] -= bytes_of(value);
  };
  if (place.empty()) return {};
  for (const Value* input : graph.inputs()) hold(*input, 0);
  for (const auto& node : graph.nodes())
    for (const Value* output : node->outputs())
      if (output) hold(*output, place.at(node.get()));
  double held = 0;
  change.pop_back();
  for (double& bytes : change) bytes = held += bytes;
  return change;
}

void list_captured(const Graph& inner, const Graph& outer, std::vector<std::string>& names) {
  for (const auto& node : inner.nodes()) {
    for (const Value* input : node->inputs())
      if (input && &input->graph() == &outer && !input->constant()) names.push_back(input->name());
    for (const Graph* nested : node->subgraphs()) list_captured(*nested, outer, names);
  }
}

NodeReport report_of(const Node& node) {
  NodeReport report;
  report.name = node.name;
  report.op = shown_op(node);
  report.flops = work_of(node).operations;
  for (const Value* input : node.inputs()) {
    if (!input) continue;
    if (const Tensor* weights = constant_of(*input); !weights)
      report.inputs.push_back(input->name());
    else if (weights->dtype() != DType::string)
      report.weight_bytes += static_cast<double>(weights->bytes());
  }
  for (const Graph* inner : node.subgraphs()) list_captured(*inner, node.graph(), report.inputs);
  for (const Value* output : node.outputs()) {
    if (!output) continue;
    report.outputs.push_back(output->name());
    report.types.push_back(type_of(*output));
  }
  return report;
}

}  // namespace

GraphReport drawn(std::string name, const Model& sized) {
  const Graph& graph = sized.graph();
  GraphReport report{.name = std::move(name), .inputs = {}, .outputs = {}, .nodes = {}};
  for (const Value* input : graph.inputs())
    if (!input->is_initializer()) report.inputs.push_back(input->name());
  for (const Value* output : graph.outputs()) report.outputs.push_back(output->name());
  const std::vector<double> live = live_bytes(graph);
  std::size_t place = 0;
  for (const auto& node : graph.nodes()) {
    const double held = live[place++];
    if (node->is("Constant")) continue;
    report.nodes.push_back(report_of(*node));
    report.nodes.back().live_bytes = held;
  }
  return report;
}

double activation_bytes(const Model& sized) {
  const std::vector<double> live = live_bytes(sized.graph());
  return live.empty() ? 0 : *std::ranges::max_element(live);
}

}  // namespace modelflow
