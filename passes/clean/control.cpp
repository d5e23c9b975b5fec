#include <unordered_map>
#include <utility>

#include "passes/clean/clean.h"
#include "passes/facts.h"

namespace modelflow::passes {

namespace {

/// Moves the contents of a subgraph in front of the node that owns it.
class Inliner {
 public:
  Inliner(Graph& outer, Node& owner) : outer_(outer), owner_(owner) {}

  void move(Graph& branch) {
    for (Value* value : branch.initializers()) take(*value, outer_.add_constant(*value->initializer(), value->name()));
    for (const auto& node : branch.nodes()) move(*node);
  }

  /// Where a value of the branch, or one that the branch captured, is found now.
  Value* moved(Value* value) const {
    const auto found = places_.find(value);
    return found == places_.end() ? value : found->second;
  }

 private:
  void move(Node& node) {
    std::vector<Value*> inputs;
    for (Value* input : node.inputs()) inputs.push_back(moved(input));
    const std::string op = node.domain().empty() ? node.op() : node.domain() + ":" + node.op();
    // The subgraphs of the node move along: from here on they belong to its copy.
    Node& copy = outer_.add(op, std::move(inputs),
                            {.before = &owner_,
                             .outputs = node.outputs().size(),
                             .attrs = std::exchange(node.attrs, {}),
                             .name = node.name});
    copy.overload = node.overload;
    copy.doc = node.doc;
    copy.metadata = node.metadata;
    for (std::size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.output(i))
        take(*node.output(i), *copy.output(i));
      else
        outer_.set_output(copy, i, nullptr);
    }
  }

  void take(Value& from, Value& to) {
    places_[&from] = &to;
    if (to.type.kind == Type::Kind::unknown) to.type = from.type;
    // Nested subgraphs that capture the value read it at its new place; nodes of the branch itself are made anew.
    const std::vector<Use> uses = from.uses();
    for (const Use& use : uses)
      if (&use.node->graph() != &from.graph()) use.node->graph().set_input(*use.node, use.index, &to);
  }

  Graph& outer_;
  Node& owner_;
  std::unordered_map<const Value*, Value*> places_;
};

int inline_constant_branches(Graph& graph, Context& context) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (node->is("If")) nodes.push_back(node.get());
  int changes = 0;
  for (Node* node : nodes) {
    const std::optional<Ints> condition = const_ints(node->input(0));
    if (!condition || condition->size() != 1) {
      context.miss("constant-if", node, "its condition is not constant");
      continue;
    }
    const Subgraph* branch = node->attrs.graph(condition->front() ? "then_branch" : "else_branch");
    if (!branch || (*branch)->outputs().size() < node->outputs().size() || !(*branch)->pinned.empty()) continue;
    Inliner inliner(graph, *node);
    inliner.move(**branch);
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
      if (!node->output(i)) continue;
      Value* result = inliner.moved((*branch)->outputs()[i]);
      // A graph output stays the output of a node.
      if (node->output(i)->is_graph_output() && (!result->producer() || &result->graph() != &graph))
        result = graph.add("Identity", {result}, {.before = node}).output();
      graph.replace(*node->output(i), *result);
    }
    graph.erase(*node);
    context.hit("constant-if");
    ++changes;
  }
  return changes;
}

}  // namespace

Pass inline_branches() {
  return {.name = "inline-branches",
          .doc = "Puts the branch that a constant condition takes in place of the If.",
          .run = inline_constant_branches};
}

}  // namespace modelflow::passes
