// What elementwise ops no product or norm has taken -> modelflow.Pointwise: trees of them whose inner results nobody
// else reads, so that the tensors pass through memory once.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "modelflow/modelflow.h"
#include "passes/fuse/epilogue.h"
#include "passes/fuse/fuse.h"

namespace modelflow::passes {
namespace {

constexpr std::array kArithmetic = {"Add", "Sub", "Mul", "Div", "Neg", "Abs", "Sqrt", "Reciprocal", "Log"};
constexpr std::array kPlainActivations = {"Relu", "Sigmoid", "Tanh", "SiLU", "Mish", "Gelu", "GeluTanh"};
constexpr std::size_t kMostInputs = 8, kMostNodes = 16;

template <class List>
bool contains(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// What the node is called in a program; empty for what programs do not have.
std::string program_op(const Node& node, std::int64_t opset) {
  if (!node.output() || node.output()->dtype() != DType::f32) return {};
  if (node.domain().empty()) {
    if (contains(kArithmetic, node.op())) return node.op();
    // These broadcast from opset 8 on.
    if ((node.is("Max") || node.is("Min")) && node.inputs().size() == 2 && opset >= 8) return node.op();
    if (node.is("Pow") && node.input(0)->dtype() == DType::f32 && scalar(node.input(1)) == 2.0f) return "Square";
  }
  if (node.attrs.number("post_scale", 1) != 1 || node.attrs.number("post_shift", 0) != 0) return {};
  const std::optional<Activation> activation = activation_of(node);
  return activation && contains(kPlainActivations, activation->kind) ? activation->kind : std::string();
}

/// A tree under construction: `sink` is computed from what `nodes` compute, and nobody else reads that.
class Tree {
 public:
  Tree(Node& sink, Extents& extents, std::int64_t opset)
      : sink_(sink), shape_(extents.of(*sink.output())), extents_(extents), opset_(opset), nodes_{&sink} {}

  /// Takes producers in until none fits any more.
  void grow(const std::unordered_set<const Node*>& taken) {
    for (bool grown = true; grown && nodes_.size() < kMostNodes;) {
      grown = false;
      for (Value* input : inputs()) {
        Node* node = input->producer();
        if (!node || taken.contains(node) || !fits(*input)) continue;
        nodes_.insert(node);
        if (inputs().size() <= kMostInputs) {
          grown = true;
          break;
        }
        nodes_.erase(node);
      }
    }
  }

  /// What the tree reads from outside, each once.
  std::vector<Value*> inputs() const {
    std::vector<Value*> found;
    for (const Node* node : nodes_) {
      for (std::size_t i = 0; i < operands(*node); ++i) {
        Value* value = node->input(i);
        if (!nodes_.contains(value->producer()) && std::find(found.begin(), found.end(), value) == found.end())
          found.push_back(value);
      }
    }
    return found;
  }

  const std::unordered_set<Node*>& nodes() const { return nodes_; }
  /// The nodes in the order of the graph, the sink last.
  std::vector<Node*> ordered() const {
    std::vector<Node*> list;
    for (const auto& node : sink_.graph().nodes()) {
      if (nodes_.contains(node.get())) list.push_back(node.get());
    }
    return list;
  }

  /// An activation's alpha and the exponent of a square are not operands.
  static std::size_t operands(const Node& node) {
    const bool binary = node.domain().empty() && node.inputs().size() == 2 && !node.is("Pow");
    return binary ? 2 : 1;
  }

 private:
  /// Read by the tree alone, and of its shape: what is smaller would be computed again and again.
  bool fits(const Value& value) {
    const Node& node = *value.producer();
    if (&node.graph() != &sink_.graph() || value.is_graph_output() || program_op(node, opset_).empty()) return false;
    const auto inside = [&](const Use& use) { return nodes_.contains(use.node); };
    if (!std::all_of(value.uses().begin(), value.uses().end(), inside)) return false;
    const Shape shape = extents_.of(value);
    return shape.has_rank() && shape == shape_;
  }

  Node& sink_;
  Shape shape_;
  Extents& extents_;
  std::int64_t opset_;
  std::unordered_set<Node*> nodes_;
};

/// "Mul x0 x1; Add t0 x2".
std::string program_of(const std::vector<Node*>& nodes, const std::vector<Value*>& inputs, std::int64_t opset) {
  std::unordered_map<const Value*, std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) names[inputs[i]] = " x" + std::to_string(i);
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    const std::string op = program_op(node, opset), first = names[node.input(0)];
    if (i) text += "; ";
    text += op == "Square" ? "Mul" : op;
    text += first;
    if (op == "Square") text += first;
    if (Tree::operands(node) == 2) text += names[node.input(1)];
    names[node.output()] = " t" + std::to_string(i);
  }
  return text;
}

bool fuse_tree(const Tree& tree, Extents& extents, Context& context) {
  std::vector<Node*> nodes = tree.ordered();
  Node& sink = *nodes.back();
  // In the order of reading, so that equal trees get equal programs.
  std::vector<Value*> inputs;
  for (const Node* node : nodes) {
    for (std::size_t i = 0; i < Tree::operands(*node); ++i) {
      Value* value = node->input(i);
      const bool inner = value->producer() && tree.nodes().contains(value->producer());
      if (!inner && std::find(inputs.begin(), inputs.end(), value) == inputs.end()) inputs.push_back(value);
    }
  }
  Attrs attrs;
  attrs.set("program", program_of(nodes, inputs, context.model.opset()));
  Graph& graph = sink.graph();
  Node* fused = make_fused(graph, context, "pointwise", "modelflow.Pointwise", inputs, std::move(attrs), sink);
  if (!fused) return false;
  for (Node* node : nodes) extents.forget(*node->output());
  graph.replace(*sink.output(), *fused->output());
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) graph.erase(**node);
  context.hit("pointwise");
  return true;
}

int run(Graph& graph, Context& context) {
  Extents extents(graph);
  const std::int64_t opset = context.model.opset();
  std::vector<Node*> sinks;  // last first: what a later tree takes in is no sink any more
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!program_op(**node, opset).empty()) sinks.push_back(node->get());
  }
  std::unordered_set<const Node*> taken;
  int changes = 0;
  for (Node* sink : sinks) {
    if (taken.contains(sink)) continue;
    Tree tree(*sink, extents, opset);
    tree.grow(taken);
    if (tree.nodes().size() < 2) continue;
    taken.insert(tree.nodes().begin(), tree.nodes().end());
    changes += fuse_tree(tree, extents, context);
  }
  return changes;
}

}  // namespace

Pass fuse_pointwise() {
  return {.name = "fuse-pointwise",
          .doc = "Trees of elementwise ops of one shape that nothing else has taken -> modelflow.Pointwise",
          .run = run};
}

}  // namespace modelflow::passes
