// Deep copies of graphs.
#include "modelflow/error.h"
#include "modelflow/graph.h"

namespace modelflow {

/// Where each value of the copied tree went. Values of graphs around it are `given`, or looked up by name in `outer`.
struct Graph::Copies {
  struct Level {
    const Graph* graph;
    std::vector<Value*> made;  ///< by the ids of its values
  };
  std::vector<Level> levels = {};  ///< the graph that is being copied and those around it
  std::unordered_map<const Value*, Value*> given = {};
  const Graph* outer = nullptr;

  Value* of(const Value* value) const {
    if (!value) return nullptr;
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
      if (level->graph != value->graph_) continue;
      if (Value* made = level->made[value->id_]) return made;
    }
    if (const auto it = given.find(value); it != given.end()) return it->second;
    if (Value* found = outer ? outer->find_visible(value->name()) : nullptr) return found;
    throw Error(ErrorKind::internal, "'" + value->name() + "' of an enclosing graph is not there for the copy");
  }
};

void Graph::copy_values(Graph& to, Copies& copies) const {
  std::vector<Value*>& copied = copies.levels.back().made;
  to.by_name_.reserve(values_.size());
  for (const Value& value : values_) {
    Value& made = to.add_value(value.name_, value.type);
    made.doc = value.doc;
    made.metadata = value.metadata;
    made.initializer_ = value.initializer_;
    made.is_input_ = value.is_input_;
    made.uses_.reserve(value.uses_.size());
    copied[value.id_] = &made;
  }
  for (const Value* value : initializers_) {
    Value* made = copies.of(value);
    made->among_initializers_ = to.initializers_.insert(to.initializers_.end(), made);
  }
  for (const Value* value : inputs_) to.inputs_.push_back(copies.of(value));
}

void Graph::copy_node(const Node& node, Graph& to, Copies& copies) const {
  auto owned = std::make_unique<Node>();
  Node& copy = *owned;
  copy.name = node.name;
  copy.overload = node.overload;
  copy.doc = node.doc;
  copy.metadata = node.metadata;
  copy.extras = node.extras;
  copy.attrs = node.attrs;
  copy.op_ = node.op_;
  copy.domain_ = node.domain_;
  copy.graph_ = &to;
  to.root().nested_names_.insert(copy.name);
  copy.where_ = to.nodes_.insert(to.nodes_.end(), std::move(owned));
  copy.inputs_.resize(node.inputs_.size());
  copy.slots_.resize(node.inputs_.size());
  for (std::size_t i = 0; i < node.inputs_.size(); ++i) to.add_use(copies.of(node.inputs_[i]), copy, i);
  for (std::size_t i = 0; i < node.outputs_.size(); ++i) {
    Value* value = copies.of(node.outputs_[i]);
    if (value) {
      value->producer_ = &copy;
      value->output_index_ = i;
    }
    copy.outputs_.push_back(value);
  }
  if (!copy.attrs.may_hold_graphs()) return;
  const auto deepen = [&](Subgraph& graph) {
    if (graph) graph = graph->copy(&copy, copies);
  };
  for (auto& [key, attr] : copy.attrs) {
    if (auto* one = std::get_if<Subgraph>(&attr)) deepen(*one);
    if (auto* many = std::get_if<std::vector<Subgraph>>(&attr)) {
      for (Subgraph& graph : *many) deepen(graph);
    }
  }
}

std::unique_ptr<Graph> Graph::copy(Node* parent, Copies& copies) const {
  auto to = std::make_unique<Graph>(parent);
  to->name = name;
  to->doc = doc;
  to->metadata = metadata;
  to->extras = extras;
  to->pinned = pinned;
  copies.levels.push_back({this, std::vector<Value*>(next_id_)});
  copy_values(*to, copies);
  if (!parent) to->nested_names_ = nested_names_;
  for (const auto& node : nodes_) copy_node(*node, *to, copies);
  for (const Value* value : outputs_) to->add_output(*copies.of(value));
  copies.levels.pop_back();
  return to;
}

std::unique_ptr<Graph> Graph::clone(Node* parent, Graph* outer) const {
  Copies copies{.outer = outer};
  return copy(parent, copies);
}

std::unique_ptr<Graph> Graph::clone(Node* parent, std::unordered_map<const Value*, Value*> outer) const {
  Copies copies{.given = std::move(outer)};
  return copy(parent, copies);
}

}  // namespace modelflow
