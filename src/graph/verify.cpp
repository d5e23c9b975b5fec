// Every invariant of a graph checked.
#include "src/graph/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "modelflow/error.h"

namespace modelflow {
namespace {

bool has_graph(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(), [](const auto& entry) {
    const auto* list = std::get_if<std::vector<Subgraph>>(&entry.second);
    return std::holds_alternative<Subgraph>(entry.second) || (list && !list->empty());
  });
}

class Check {
 public:
  explicit Check(std::string_view label) : label_(label) {}

  void graph(const Graph& graph) {
    values_.clear();
    tree(graph);
    // Only now every reader of every value has been counted.
    for (const auto& [value, readers] : values_) uses(*value, readers);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw Error(ErrorKind::internal, message).within(label_); }
  void expect(bool condition, const std::string& message) const {
    if (!condition) fail(message);
  }

  void tree(const Graph& graph) {
    inside_.insert(&graph);
    for (const Value* value : graph.inputs()) source(graph, *value, "input");
    for (const Value* value : graph.initializers()) source(graph, *value, "initializer");

    for (const auto& node : graph.nodes()) {
      expect(&node->graph() == &graph, node->label() + " believes that it is in another graph");
      for (std::size_t i = 0; i < node->inputs().size(); ++i) input(*node, i);
      expect(graph.holds_graphs() || !has_graph(*node),
             node->label() + " has a subgraph that its graph knows nothing of");
      for (const Graph* nested : node->subgraphs()) {
        expect(nested->parent() == node.get(), node->label() + " is not the parent of its own subgraph");
        tree(*nested);
      }
      for (std::size_t i = 0; i < node->outputs().size(); ++i) output(*node, i);
      done_.insert(node.get());
    }
    outputs(graph);
  }

  void source(const Graph& graph, const Value& value, const std::string& kind) {
    const std::string what = kind + " '" + value.name() + "'";
    values_[&value];
    expect(value.producer() == nullptr, what + " is computed by a node");
    named(graph, value);
    if (const Tensor* tensor = value.initializer(); tensor && value.type.is_tensor()) {
      expect(value.dtype() == tensor->dtype(), what + " has another element type than its bytes");
      if (!value.is_graph_input()) {
        expect(value.shape() == Shape::of(tensor->dims()), what + " has another shape than its bytes");
      }
    }
  }

  void named(const Graph& graph, const Value& value) {
    const std::string what = "value '" + value.name() + "'";
    expect(!value.name().empty(), "a value has no name");
    expect(&value.graph() == &graph, what + " believes that it is in another graph");
    expect(graph.find(value.name()) == &value, what + " is not what its graph finds under this name");
  }

  void visible(const Graph& from, const Value& value, const std::string& reader) {
    const bool kept = value.graph().pinned.contains(value.name());  // an initializer of a type that nobody here knows
    const bool has_source = value.producer() || value.is_initializer() || value.is_graph_input() || kept;
    expect(has_source, reader + " reads '" + value.name() + "', which nothing computes");
    expect(from.find_visible(value.name()) == &value, reader + " reads '" + value.name() + "' out of its scope");
    if (value.producer() && inside_.contains(&value.graph())) {
      expect(done_.contains(value.producer()), reader + " reads '" + value.name() + "' before it is computed");
    }
  }

  void input(const Node& node, std::size_t index) {
    const Value* value = node.inputs()[index];
    if (!value) return;
    visible(node.graph(), *value, node.label());
    if (inside_.contains(&value->graph())) values_[value].push_back({const_cast<Node*>(&node), index});
  }

  void output(const Node& node, std::size_t index) {
    const Value* value = node.outputs()[index];
    if (!value) return;
    values_[value];
    named(node.graph(), *value);
    const bool tied = value->producer() == &node && value->output_index() == index;
    expect(tied, node.label() + ": its output '" + value->name() + "' believes in another producer");
    expect(!value->is_initializer(), node.label() + ": its output '" + value->name() + "' is also an initializer");
    expect(!value->is_graph_input(), node.label() + ": its output '" + value->name() + "' is also a graph input");
  }

  void outputs(const Graph& graph) {
    for (const Value* value : graph.outputs()) {
      expect(value != nullptr, "a graph output is missing");
      expect(value->is_graph_output(), "graph output '" + value->name() + "' does not know that it is one");
      visible(graph, *value, "graph '" + graph.name + "'");
    }
  }

  void uses(const Value& value, const std::vector<Use>& readers) const {
    const std::string what = "value '" + value.name() + "'";
    expect(value.uses().size() == readers.size(), what + " has " + std::to_string(readers.size()) + " readers and " +
                                                      std::to_string(value.uses().size()) + " uses");
    std::unordered_map<const Node*, std::unordered_set<std::size_t>> seen;
    for (const Use& use : value.uses()) seen[use.node].insert(use.index);
    for (const Use& reader : readers) {
      const auto found = seen.find(reader.node);
      const bool listed = found != seen.end() && found->second.contains(reader.index);
      expect(listed, what + " does not list its reader " + reader.node->label());
    }
  }

  std::string_view label_;
  std::unordered_set<const Graph*> inside_;  ///< what is checked: a nested graph may be checked alone
  std::unordered_set<const Node*> done_;     ///< nodes that stand before the current point
  std::unordered_map<const Value*, std::vector<Use>> values_;
};

}  // namespace

void verify(const Graph& graph, std::string_view label) { Check(label).graph(graph); }

void verify(const Model& model, std::string_view label) {
  verify(model.graph(), label);
  for (const Function& function : model.functions) {
    if (function.body) verify(*function.body, std::string(label) + ": function '" + function.name + "'");
  }
}

}  // namespace modelflow
