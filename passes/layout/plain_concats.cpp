// Concats of images beyond the names that their op has, as ONNX writes them.
#include <algorithm>
#include <map>
#include <vector>

#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"

namespace modelflow::passes {
namespace {

/// Calls with one body, which share a name.
using Alike = std::vector<Node*>;

/// Images of the size of the result, side by side: what a Concat along the last axis is.
bool is_plain(const Node& node) {
  return node.attrs.ints("groups") == Ints{1} &&
         std::ranges::all_of(node.attrs.ints("factors"), [](std::int64_t f) { return f == 1; });
}

void write_plainly(Node& node) {
  Graph& graph = node.graph();
  Node& made = graph.add("Concat", node.inputs(), {.before = &node, .attrs = {{"axis", std::int64_t{3}}}});
  made.name = node.name;
  made.output()->type = node.output()->type;
  graph.replace(*node.output(), *made.output());
  graph.erase(node);
}

/// A body has as many inputs as its Concat, so models of many kinds of blocks (YOLO's have four) want more names than
/// there are. A call without a name is written out, and the body has Transposes around a Concat in front: these are
/// for runtimes that compute channels first.
int run(Graph& graph, Context& context) {
  const FusedOp& op = *find_fused_op("Concat");
  std::map<std::string, Alike> by_body;
  for (Node* node : nodes_of(graph, {"modelflow.Concat"}))
    by_body[op.body(call_of(*node), static_cast<int>(context.model.opset()))].push_back(node);
  std::vector<Alike> plain;
  for (auto& [body, alike] : by_body)
    if (is_plain(*alike.front())) plain.push_back(std::move(alike));
  std::ranges::stable_sort(plain, {}, [](const Alike& alike) { return alike.size(); });
  const std::size_t names = static_cast<std::size_t>(op.names);
  const std::size_t beyond = by_body.size() > names ? by_body.size() - names : 0;
  int changes = 0;
  for (std::size_t i = 0; i < std::min(beyond, plain.size()); ++i) {
    for (Node* node : plain[i]) write_plainly(*node);
    changes += static_cast<int>(plain[i].size());
  }
  if (changes) context.hit("plain-concats", changes);
  return changes;
}

}  // namespace

Pass plain_concats() {
  return {.name = "plain-concats",
          .doc = "Channels-last Concats beyond the names of their op are ONNX's own, along the last axis",
          .run = run,
          .whole_model = true};
}

}  // namespace modelflow::passes
