// Bodies of local functions written out in place of their calls.
#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "modelflow/error.h"
#include "modelflow/function.h"
#include "modelflow/modelflow.h"
#include "src/emit/emit.h"

namespace modelflow {
namespace {

using Bound = std::unordered_map<const Value*, Value*>;

/// The attributes of a body node with references replaced by what the call says, or the function's default, or nothing.
Attrs resolve(const Attrs& attrs, const Node& call, const Function& function) {
  Attrs resolved;
  for (const auto& [name, attr] : attrs) {
    const auto* reference = std::get_if<AttrRef>(&attr);
    const Attr* value = &attr;
    if (reference) {
      value = call.attrs.find(reference->name);
      if (!value) value = function.defaults.find(reference->name);
    }
    if (value) resolved.set(name, *value);
  }
  return resolved;
}

/// Names of a subgraph's own values that stand already around the call are changed.
void rename_clashes(Graph& graph, Graph& around) {
  const auto fresh = [&](Value* value) {
    if (value && &value->graph() == &graph && around.find_visible(value->name()))
      graph.rename(*value, graph.unique_name(value->name()));
  };
  for (Value* value : graph.inputs()) fresh(value);
  for (Value* value : graph.initializers()) fresh(value);
  for (const auto& node : graph.nodes()) {
    for (Value* value : node->outputs()) fresh(value);
    for (Graph* inner : node->subgraphs()) rename_clashes(*inner, around);
  }
}

void resolve_inside(Graph& graph, const Node& call, const Function& function) {
  for (const auto& node : graph.nodes()) {
    node->attrs = resolve(node->attrs, call, function);
    for (Graph* inner : node->subgraphs()) resolve_inside(*inner, call, function);
  }
}

class Inliner {
 public:
  Inliner(Node& call, const Function& function, InnerNames names)
      : call_(call), function_(function), graph_(call.graph()), names_stay_(names == InnerNames::kept) {}

  void run() {
    const Graph& body = *function_.body;
    for (std::size_t i = 0; i < body.inputs().size(); ++i) bound_[body.inputs()[i]] = call_.input(i);
    for (const Value* value : body.initializers())
      if (!value->is_graph_input()) bound_[value] = &graph_.add_constant(*value->initializer(), value->name());
    for (const auto& node : body.nodes()) copy(*node);
    const std::vector<Value*> outputs = call_.outputs();
    for (std::size_t i = 0; i < outputs.size() && i < body.outputs().size(); ++i)
      if (outputs[i]) graph_.replace(*outputs[i], *bound_.at(body.outputs()[i]));
    graph_.erase(call_);
  }

 private:
  void copy(const Node& node) {
    std::vector<Value*> inputs;
    for (const Value* value : node.inputs()) inputs.push_back(value ? bound_.at(value) : nullptr);
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    const std::string op = node.domain() + ":" + node.op();
    Node& made =
        graph_.add(op, std::move(inputs),
                   {.before = &call_, .outputs = node.outputs().size(), .name = graph_.unique_name(stem(node))});
    made.overload = node.overload;
    made.attrs = resolve(node.attrs, call_, function_);
    made.extras = node.extras;
    made.doc = node.doc;
    made.metadata = node.metadata;
    for (std::size_t i = 0; i < node.outputs().size(); ++i) {
      const Value* value = node.outputs()[i];
      if (value) {
        if (names_stay_) graph_.rename(*made.output(i), graph_.unique_name(value->name()));
        made.output(i)->type = value->type;
        bound_[value] = made.output(i);
      } else {
        Value* unwanted = made.output(i);
        graph_.set_output(made, i, nullptr);
        graph_.erase(*unwanted);
      }
    }
    for (auto& [name, attr] : made.attrs) {
      if (auto* one = std::get_if<Subgraph>(&attr)) *one = copy(**one, made);
      if (auto* many = std::get_if<std::vector<Subgraph>>(&attr))
        for (Subgraph& graph : *many) graph = copy(*graph, made);
    }
  }

  std::string stem(const Node& node) const {
    if (names_stay_ && !node.name.empty()) return node.name;
    return call_.name.empty() ? node.op() : call_.name + "_" + node.op();
  }

  Subgraph copy(const Graph& subgraph, Node& owner) {
    Subgraph made = subgraph.clone(&owner, bound_);
    resolve_inside(*made, call_, function_);
    rename_clashes(*made, graph_);
    return made;
  }

  Node& call_;
  const Function& function_;
  Graph& graph_;
  bool names_stay_;
  Bound bound_;
};

/// A body of another opset version cannot stand in the model's graph.
bool fits(const Function& function, const Model& model) {
  for (const auto& [domain, version] : function.opsets) {
    const auto imported = model.opsets.find(domain);
    if (imported != model.opsets.end() && imported->second != version && domain != kDomain) return false;
  }
  return true;
}

using Wanted = std::function<bool(const Function&)>;

void inline_calls(Graph& graph, Model& model, const Wanted& wanted) {
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node& node = **it;
    const Function* function = find_function(model, node);
    // A branch that the call hands over may read what stands around the call, which the copy of the body does not know.
    if (!function || !wanted(*function) || !fits(*function, model) || !node.subgraphs().empty()) {
      for (Graph* inner : node.subgraphs()) inline_calls(*inner, model, wanted);
      ++it;
      continue;
    }
    for (const auto& [domain, version] : function->opsets)
      if (domain != kDomain) model.opsets.emplace(domain, version);
    const bool first = it == graph.nodes().begin();
    const auto before = first ? it : std::prev(it);
    inline_call(node, *function);
    it = first ? graph.nodes().begin() : std::next(before);  // calls inside of the body come next
  }
}

void count_calls(const Graph& graph, const Model& model, std::set<const Function*>& called) {
  for (const auto& node : graph.nodes()) {
    const Function* function = find_function(model, *node);
    if (function && called.insert(function).second) count_calls(*function->body, model, called);
    for (const Graph* inner : node->subgraphs()) count_calls(*inner, model, called);
  }
}

}  // namespace

std::set<const Function*> called_functions(const Model& model) { return called_functions(model, model.graph()); }

std::set<const Function*> called_functions(const Model& model, const Graph& graph) {
  std::set<const Function*> called;
  count_calls(graph, model, called);
  return called;
}

void drop_uncalled(Model& model) {
  const std::set<const Function*> called = called_functions(model);
  std::vector<Function> kept;
  for (Function& function : model.functions)
    if (called.contains(&function)) kept.push_back(std::move(function));
  model.functions = std::move(kept);
}

void inline_call(Node& call, const Function& function, InnerNames names) { Inliner(call, function, names).run(); }

Model inline_functions(Model model) {
  const Wanted all = [](const Function&) { return true; };
  inline_calls(model.graph(), model, all);
  drop_uncalled(model);
  if (model.functions.empty()) model.opsets.erase(std::string(kDomain));
  return model;
}

void absorb_functions(Model& model) {
  const Wanted ours = [](const Function& function) { return function.domain == kDomain; };
  if (std::ranges::any_of(model.functions, ours)) {
    for (Function& function : model.functions)
      if (!ours(function)) inline_calls(*function.body, model, ours);
    inline_calls(model.graph(), model, ours);
    drop_uncalled(model);
  }
  const auto left = std::ranges::find_if(model.functions, ours);
  if (left == model.functions.end()) {
    model.opsets.erase(std::string(kDomain));
    return;
  }
  // As it is called like one of our ops, its calls could not be told from these.
  throw Error(ErrorKind::unsupported, "the local function " + left->domain + "::" + left->name +
                                          " is in the domain of our own ops and has a body of another opset than the "
                                          "model, so that it cannot be written out");
}

}  // namespace modelflow
