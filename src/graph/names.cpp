// Names that are unique in a graph and those inside it.
#include <utility>

#include "modelflow/error.h"
#include "modelflow/graph.h"

namespace modelflow {
namespace {

/// A graph that was built on its own may use names that the graphs around it have too: its own values give way.
void leave_shadows(Graph& graph) {
  std::vector<Value*> values = graph.initializers();
  values.insert(values.end(), graph.inputs().begin(), graph.inputs().end());
  for (const auto& node : graph.nodes()) {
    values.insert(values.end(), node->outputs().begin(), node->outputs().end());
    for (Graph* nested : node->subgraphs()) leave_shadows(*nested);
  }
  for (Value* value : values) {
    const bool shadows = value && graph.parent()->graph().find_visible(value->name());
    if (shadows && !graph.pinned.contains(value->name())) graph.rename(*value, graph.unique_name(value->name()));
  }
}

}  // namespace

Graph& Graph::root() {
  Graph* graph = this;
  while (graph->parent_) graph = &graph->parent_->graph();
  return *graph;
}

bool Graph::taken(const std::string& name) {
  const Graph& top = root();
  return top.by_name_.contains(name) || top.nested_names_.contains(name) || by_name_.contains(name);
}

/// Makes unique_name stay clear of a name. Names are never given back: a stale one costs nothing.
void Graph::claim(const std::string& name) {
  if (parent_) root().nested_names_.insert(name);
}

std::string Graph::unique_name(std::string_view stem) {
  std::string base(stem.empty() ? "value" : stem);
  const auto [suffix, first] = root().next_suffix_.try_emplace(base, 0);
  if (first && !taken(base)) return base;
  while (true) {
    std::string name = base + "_" + std::to_string(++suffix->second);
    if (!taken(name)) return name;
  }
}

void Graph::set_parent(Node* parent) {
  if (parent_ == parent) return;
  parent_ = parent;
  if (!parent) return;
  parent->graph_->holds_graphs_ = true;
  Graph& top = root();
  for (const auto& [name, value] : by_name_) top.nested_names_.emplace(name);
  top.nested_names_.merge(std::unordered_set<std::string>(nested_names_));
  leave_shadows(*this);
}

Value* Graph::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Value* Graph::find_visible(std::string_view name) const {
  for (const Graph* graph = this; graph; graph = graph->parent_ ? &graph->parent_->graph() : nullptr) {
    if (Value* value = graph->find(name)) return value;
  }
  return nullptr;
}

void Graph::rename(Value& value, std::string name) {
  if (value.graph_ != this) throw Error(ErrorKind::internal, "'" + value.name_ + "' is renamed in another graph");
  if (value.name_ == name) return;
  if (pinned.contains(value.name_)) {
    throw Error(ErrorKind::internal, "'" + value.name_ + "' is renamed although other parts of the model refer to it");
  }
  if (name.empty() || by_name_.contains(name)) {
    throw Error(ErrorKind::invalid_input, "the name '" + name + "' is given to two values of one graph");
  }
  by_name_.erase(value.name_);
  claim(name);
  value.name_ = std::move(name);
  by_name_.emplace(value.name_, &value);
  ++version_;
}

void Graph::swap_names(Value& a, Value& b) {
  by_name_.erase(a.name_);
  by_name_.erase(b.name_);
  std::swap(a.name_, b.name_);
  by_name_.emplace(a.name_, &a);
  by_name_.emplace(b.name_, &b);
  ++version_;
}

}  // namespace modelflow
