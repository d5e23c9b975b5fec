// Equal constants, and nodes that compute the same, are kept once.
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "modelflow/pass.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

/// Of both ends of the contents alone: weights that are alike there are compared, and hashing all of them would read
/// every weight of a transformer, whose layers are of one size, in each round of the stage.
std::size_t hash_of_ends(const Tensor& tensor) {
  constexpr std::size_t kEnd = 1024;
  const std::size_t size = tensor.bytes();
  if (tensor.dtype() == DType::string || size <= 2 * kEnd) return tensor.hash();
  const auto* data = reinterpret_cast<const char*>(tensor.data());
  const std::hash<std::string_view> hash;
  return hash({data, kEnd}) * 0x9e3779b97f4a7c15 + hash({data + size - kEnd, kEnd});
}

/// Equal bytes are kept once (weights that an exporter wrote twice, repeated small constants).
int merge_constants(Graph& graph) {
  // Contents are read only when another constant has the same type and size.
  std::map<std::pair<DType, Dims>, std::vector<Value*>> alike;
  for (Value* value : graph.initializers())
    if (value->constant() && !value->is_graph_output() && !graph.pinned.contains(value->name()))
      alike[{value->constant()->dtype(), value->constant()->dims()}].push_back(value);
  int changes = 0;
  for (auto& [type, values] : alike) {
    if (values.size() < 2) continue;
    std::unordered_multimap<std::size_t, Value*> seen;
    for (Value* value : values) {
      const std::size_t hash = hash_of_ends(*value->constant());
      Value* twin = nullptr;
      for (auto [at, end] = seen.equal_range(hash); at != end && !twin; ++at)
        if (at->second->constant()->same_content(*value->constant())) twin = at->second;
      if (!twin) {
        seen.emplace(hash, value);
        continue;
      }
      graph.replace(*value, *twin);
      graph.erase(*value);
      ++changes;
    }
  }
  return changes;
}

/// Nodes with the same op and inputs; attributes are compared afterwards. Inputs of a node that was seen stay as they
/// are: what is replaced comes after it.
struct SameCall {
  std::size_t operator()(const Node* node) const {
    std::size_t hash = std::hash<std::string>()(node->op());
    for (const Value* input : node->inputs()) hash = hash * 0x9e3779b97f4a7c15 + std::hash<const Value*>()(input);
    return hash;
  }
  bool operator()(const Node* a, const Node* b) const {
    return a->op() == b->op() && a->inputs() == b->inputs() && a->domain() == b->domain() && a->overload == b->overload;
  }
};

/// `twin` gives everything that is wanted of `node`, and taking it changes no graph output.
bool stands_in(const Node& twin, const Node& node) {
  if (!equal(twin.attrs, node.attrs)) return false;
  // Into how many parts: that alone may say how long they are.
  if (node.is("Split") && twin.outputs().size() != node.outputs().size()) return false;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* value = node.output(i);
    if (!value) continue;
    if (!twin.output(i) || value->is_graph_output()) return false;
  }
  return true;
}

/// Fused ops too: Transposes and the like may have told them apart until layout took these.
bool told_by_inputs(const Node& node) { return deterministic(node) || fused_op(node); }

int merge_nodes(Graph& graph) {
  std::unordered_multiset<Node*, SameCall, SameCall> seen;
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (told_by_inputs(*node) && node->op() != "Constant" && !node->inputs().empty()) nodes.push_back(node.get());
  int changes = 0;
  for (Node* node : nodes) {
    Node* twin = nullptr;
    for (auto [at, end] = seen.equal_range(node); at != end && !twin; ++at)
      if (stands_in(**at, *node)) twin = *at;
    if (!twin) {
      seen.insert(node);
      continue;
    }
    for (std::size_t i = 0; i < node->outputs().size(); ++i)
      if (node->output(i)) graph.replace(*node->output(i), *twin->output(i));
    graph.erase(*node);
    ++changes;
  }
  return changes;
}

}  // namespace

Pass duplicates() {
  return {.name = "duplicates",
          .doc = "Keeps one of equal initializers and of equal nodes with equal inputs.",
          .run = [](Graph& graph, Context& context) {
            const int constants = merge_constants(graph);
            const int nodes = merge_nodes(graph);
            if (constants) context.hit("equal-initializers", constants);
            if (nodes) context.hit("equal-nodes", nodes);
            return constants + nodes;
          }};
}

}  // namespace modelflow::passes
