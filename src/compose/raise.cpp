// A model in the form of a newer opset: the changes between the two, node by node, and a look at what came out.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "modelflow/compose.h"
#include "src/compose/raise_changes.h"
#include "src/onnx/operators.h"

namespace modelflow {
namespace {

constexpr std::int64_t kOldest = 7;  // before it operators had attributes for broadcasting

Verdict refused(const Node& node, const Verdict& verdict, std::int64_t opset) {
  return no(fmt::format("{} of opset {} has no form in opset {}: {}", node.label(), opset - 1, opset, verdict.reason));
}

/// Subgraphs first: what is added around a node is of the new form already.
template <class Visit>
Verdict each_node(Graph& graph, const Visit& visit) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  for (Node* node : nodes) {
    for (Graph* inner : node->subgraphs())
      if (Verdict verdict = each_node(*inner, visit); !verdict) return verdict;
    if (!node->domain().empty()) continue;
    if (Verdict verdict = visit(*node); !verdict) return verdict;
  }
  return yes();
}

Verdict raise(Graph& graph, std::int64_t from, std::int64_t to) {
  for (std::int64_t opset = from + 1; opset <= to; ++opset) {
    const auto changed = [&](Node& node) {
      const auto change = std::ranges::find_if(
          changes(), [&](const Change& each) { return each.opset == opset && each.op == node.op(); });
      if (change == changes().end()) return yes();
      Verdict verdict = change->apply(node);
      return verdict ? verdict : refused(node, verdict, opset);
    };
    if (Verdict verdict = each_node(graph, changed); !verdict) return verdict;
  }
  return each_node(graph, [&](Node& node) { return in_opset(node, static_cast<int>(to)); });
}

}  // namespace

Verdict raise_opset(Model& model, std::int64_t opset) {
  const std::int64_t from = model.opset();
  if (from == 0 || from >= opset) return yes();
  if (from < kOldest) return no(fmt::format("opset {} is older than {}", from, kOldest));
  if (!model.functions.empty()) return no("the model has functions of its own");
  Model trial = model;  // all or nothing, in place: passes hold the graph
  if (Verdict verdict = raise(trial.graph(), from, opset); !verdict) return verdict;
  if (Verdict verdict = raise(model.graph(), from, opset); !verdict) return verdict;
  model.opsets[""] = opset;
  return yes();
}

}  // namespace modelflow
