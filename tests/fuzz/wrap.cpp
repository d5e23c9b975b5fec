// Takes a run of nodes out of the main graph and puts it behind one node: If, Loop or a call of a function.
#include "tests/fuzz/wrap.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace modelflow::fuzz {
namespace {

using Int = std::int64_t;
using Map = std::unordered_map<const Value*, Value*>;

std::string full_name(const Node& node) { return (node.domain().empty() ? "" : node.domain() + ":") + node.op(); }

/// Consecutive nodes, what they read from outside and what others read of theirs.
struct Run {
  std::vector<Node*> nodes;
  std::vector<Value*> inputs, outputs;
};

void collect_inputs(Graph& graph, const std::set<const Value*>& made, const Graph& main, std::vector<Value*>& inputs) {
  for (const auto& node : graph.nodes()) {
    for (Value* input : node->inputs())
      if (input && &input->graph() == &main && !made.contains(input) &&
          std::find(inputs.begin(), inputs.end(), input) == inputs.end())
        inputs.push_back(input);
    for (Graph* inner : node->subgraphs()) collect_inputs(*inner, made, main, inputs);
  }
}

Run run_of(Graph& graph, Dice& dice) {
  std::vector<Node*> all;
  for (const auto& node : graph.nodes()) all.push_back(node.get());
  const std::size_t first = dice.below(all.size()),
                    count = 1 + dice.below(std::min<std::size_t>(6, all.size() - first));
  Run run{{all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(first + count)},
          {},
          {}};
  std::set<const Node*> inside(run.nodes.begin(), run.nodes.end());
  std::set<const Value*> made;
  for (Node* node : run.nodes) {
    for (Value* input : node->inputs())
      if (input && !made.contains(input) && std::find(run.inputs.begin(), run.inputs.end(), input) == run.inputs.end())
        run.inputs.push_back(input);
    for (Graph* inner : node->subgraphs()) collect_inputs(*inner, made, graph, run.inputs);
    for (Value* output : node->outputs()) made.insert(output);
  }
  for (Node* node : run.nodes)
    for (Value* output : node->outputs()) {
      if (!output) continue;
      const bool read = std::any_of(output->uses().begin(), output->uses().end(), [&](const Use& use) {
        const Node* at = use.node;  // a reader in a subgraph of a node of the run is inside too
        while (&at->graph() != &graph) at = at->graph().parent();
        return !inside.contains(at);
      });
      if (read || output->is_graph_output()) run.outputs.push_back(output);
    }
  return run;
}

/// The nodes of the run in another graph; values that `made` does not know are captured.
void copy_nodes(const Run& run, Graph& to, Map& made, bool captures) {
  for (const Node* node : run.nodes) {
    std::vector<Value*> inputs;
    for (Value* input : node->inputs()) {
      const auto found = made.find(input);
      inputs.push_back(!input ? nullptr : found != made.end() ? found->second : captures ? input : nullptr);
    }
    Node& copy = to.add(full_name(*node), inputs, {.outputs = node->outputs().size()});
    copy.overload = node->overload;
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
      if (!node->outputs()[i]) {
        Value* unwanted = copy.output(i);
        to.set_output(copy, i, nullptr);
        to.erase(*unwanted);
        continue;
      }
      copy.output(i)->type = node->outputs()[i]->type;
      made[node->outputs()[i]] = copy.output(i);
    }
    for (const auto& [name, attr] : node->attrs) {
      const auto* inner = std::get_if<Subgraph>(&attr);
      if (!inner) {
        copy.attrs.set(name, attr);
        continue;
      }
      Map map = made;
      for (const auto& [from, value] : made) map[from] = value;
      for (Value* input : run.inputs) map.emplace(input, input);
      copy.attrs.set(name, Subgraph((*inner)->clone(&copy, std::move(map))));
    }
  }
}

/// Puts `node` in the place of the run: its outputs take over, the nodes go.
void replace_run(Graph& graph, const Run& run, Node& by) {
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    by.output(i)->type = run.outputs[i]->type;
    graph.replace(*run.outputs[i], *by.output(i));
  }
  graph.prune();
}

bool in_if(Model& model, const Run& run, Dice& dice, bool same) {
  Graph& graph = model.graph();
  const bool constant = same || dice.chance(0.5);
  Value& condition = constant ? graph.add_constant(Tensor::scalar(dice.chance(0.5)))
                              : graph.add_input(graph.unique_name("cond"), Type::tensor(DType::boolean, Shape::of({})));
  Node& node = graph.add("If", {&condition}, {.before = run.nodes.front(), .outputs = run.outputs.size()});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto branch = std::make_shared<Graph>(&node);
    branch->name = name;
    Map made;
    copy_nodes(run, *branch, made, true);
    for (Value* output : run.outputs) {
      Value* result = made.at(output);
      if (!same && name[0] == 'e' && result->dtype() == DType::f32 && dice.chance(0.6)) {
        result = branch->add("Neg", {result}).output();
        result->type = output->type;
      }
      branch->add_output(*result);
    }
    node.attrs.set(name, Subgraph(branch));
  }
  graph.move_before(node, *run.nodes.front());
  replace_run(graph, run, node);
  return true;
}

/// A Loop whose state is an input of the run that has the type of its output, or that stacks what the run makes.
bool in_loop(Model& model, const Run& run, Dice& dice) {
  Graph& graph = model.graph();
  if (run.outputs.size() != 1 || !run.outputs[0]->shape().has_rank()) return false;
  Value* result = run.outputs[0];
  Value* state = nullptr;
  for (Value* input : run.inputs)
    if (!input->is_initializer() && input->dtype() == result->dtype() && input->shape() == result->shape())
      state = input;
  if (!state && dice.chance(0.5)) return false;
  const bool stacked = !state;
  Value& trips = graph.add_constant(Tensor::scalar<Int>(dice.between(0, 3)));
  Value* go = dice.chance(0.5) ? nullptr : &graph.add_constant(Tensor::scalar(true));
  std::vector<Value*> inputs = {&trips, go};
  if (state) inputs.push_back(state);
  Node& node = graph.add("Loop", inputs, {.before = run.nodes.front()});
  auto body = std::make_shared<Graph>(&node);
  body->name = "body";
  body->add_input(body->unique_name("step"), Type::tensor(DType::i64, Shape::of({})));
  Value& more = body->add_input(body->unique_name("more"), Type::tensor(DType::boolean, Shape::of({})));
  Map made;
  if (state) made[state] = &body->add_input(body->unique_name("state"), state->type);
  copy_nodes(run, *body, made, true);
  body->add_output(*body->add("Identity", {&more}).output());
  body->outputs()[0]->type = more.type;
  body->add_output(*made.at(result));
  node.attrs.set("body", Subgraph(body));
  if (stacked) {
    graph.add_output(*node.output());
    node.output()->type = Type::tensor(result->dtype());
    return true;  // the run itself stays
  }
  replace_run(graph, run, node);
  return true;
}

bool in_function(Model& model, const Run& run, Dice& dice) {
  Graph& graph = model.graph();
  for (const Node* node : run.nodes)
    if (!node->subgraphs().empty()) return false;
  Function function;
  function.domain = "fuzz";
  function.name = "Part" + std::to_string(model.functions.size());
  function.opsets = model.opsets;
  function.opsets["fuzz"] = 1;
  function.body = std::make_shared<Graph>();
  Map made;
  std::vector<Value*> inputs;
  for (Value* input : run.inputs) {
    if (input->constant() && input->constant()->dtype() != DType::string && dice.chance(0.6)) {
      made[input] = function.body->add("Constant", {}, {.attrs = {{"value", *input->constant()}}}).output();
      continue;
    }
    inputs.push_back(input);
    made[input] = &function.body->add_input("in" + std::to_string(inputs.size()), {});
  }
  copy_nodes(run, *function.body, made, false);
  for (Value* output : run.outputs) function.body->add_output(*made.at(output));
  for (const auto& node : function.body->nodes())
    for (Value* output : node->outputs())
      if (output) output->type = {};
  model.opsets["fuzz"] = 1;
  Node& node = graph.add("fuzz:" + function.name, inputs, {.before = run.nodes.front(), .outputs = run.outputs.size()});
  model.functions.push_back(std::move(function));
  replace_run(graph, run, node);
  return true;
}

}  // namespace

std::string wrap(Model& model, Dice& dice, bool same) {
  Graph& graph = model.graph();
  if (graph.nodes().empty()) return "";
  const Run run = run_of(graph, dice);
  if (run.outputs.empty()) return "";
  for (const Value* output : run.outputs)
    if (!output->type.is_tensor() || output->dtype() == DType::undefined) return "";
  switch (dice.below(3)) {
    case 0:
      return in_if(model, run, dice, same) ? "in If" : "";
    case 1:
      return !same && in_loop(model, run, dice) ? "in Loop" : "";
    default:
      return in_function(model, run, dice) ? "in a function" : "";
  }
}

}  // namespace modelflow::fuzz
