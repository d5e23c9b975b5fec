// Nodes of a subgraph moved into the graph around it, under names that are free there.
#include "passes/graph/inliner.h"

#include <utility>
#include <vector>

namespace modelflow::passes {

Inliner::Inliner(Graph& outer, Node& owner) : outer_(outer), owner_(owner) {
  for (const auto& node : outer.nodes()) taken_.insert(node->name);
}

/// Graphs beside each other may use the same names for their nodes; a runtime refuses one graph that has two.
std::string Inliner::free_name(const std::string& name) {
  if (name.empty() || taken_.insert(name).second) return name;
  std::string other = outer_.unique_name(name);
  while (!taken_.insert(other).second) other = outer_.unique_name(name);
  return other;
}

void Inliner::move(Graph& branch) {
  for (Value* value : branch.initializers()) take(*value, outer_.add_constant(*value->initializer(), value->name()));
  for (const auto& node : branch.nodes()) move(*node);
}

void Inliner::move(Node& node) {
  std::vector<Value*> inputs;
  for (Value* input : node.inputs()) inputs.push_back(moved(input));
  const std::string op = node.domain() + ":" + node.op();
  // The subgraphs of the node move along: from here on they belong to its copy.
  Node& copy = outer_.add(op, std::move(inputs),
                          {.before = &owner_,
                           .outputs = node.outputs().size(),
                           .attrs = std::exchange(node.attrs, {}),
                           .name = free_name(node.name)});
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

void Inliner::take(Value& from, Value& to) {
  places_[&from] = &to;
  if (to.type.kind == Type::Kind::unknown) to.type = from.type;
  // Nested subgraphs that capture the value read it at its new place; nodes of the branch itself are made anew.
  const std::vector<Use> uses = from.uses();
  for (const Use& use : uses)
    if (&use.node->graph() != &from.graph()) use.node->graph().set_input(*use.node, use.index, &to);
}

}  // namespace modelflow::passes
