// Who reads a value: a graph output, a further node, a subgraph; and the whole graph as the body of an If or a Loop.
#include <unordered_map>

#include "tests/obligations/mutation.h"

namespace modelflow::obligations {
namespace {

using Copies = std::unordered_map<const Value*, Value*>;

/// The nodes of `from` in `body`; what is known already (inputs) stands in `copies`.
void copy_into(const Graph& from, Graph& body, Copies& copies, bool with_constants) {
  for (const Value* value : from.initializers())
    if (with_constants && !value->is_graph_input())
      copies[value] = &body.add_constant(*value->initializer(), value->name());
  for (const auto& node : from.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(input ? copies.at(input) : nullptr);
    const std::string op = node->domain().empty() ? node->op() : node->domain() + ":" + node->op();
    Node& made = body.add(op, inputs, {.outputs = node->outputs().size(), .attrs = node->attrs});
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
      if (node->output(i)) {
        copies[node->output(i)] = made.output(i);
        made.output(i)->type = node->output(i)->type;
        continue;
      }
      Value* unwanted = made.output(i);
      body.set_output(made, i, nullptr);
      body.erase(*unwanted);
    }
  }
}

/// A main graph with the inputs of `from` and, if wanted, its constants.
struct Around {
  Model model;
  Copies copies;
  explicit Around(const Model& from, bool with_constants) {
    model.opsets = from.opsets;
    model.ir_version = from.ir_version;
    model.functions = from.functions;
    model.graph().name = from.graph().name;
    Graph& graph = model.graph();
    for (const Value* input : from.graph().inputs()) copies[input] = &graph.add_input(input->name(), input->type);
    for (const Value* value : from.graph().initializers())
      if (value->is_graph_input())
        graph.set_initializer(*copies[value], *value->initializer());
      else if (with_constants)
        copies[value] = &graph.add_constant(*value->initializer(), value->name());
  }
};

void finish(Model& model, const Model& from, Node& node) {
  for (std::size_t i = 0; i < from.graph().outputs().size(); ++i) model.graph().add_output(*node.output(i));
}

bool plain(const Model& model) {
  for (const Value* output : model.graph().outputs())
    if (!output->producer()) return false;
  return all_graphs(model).size() == 1;
}

void into_branches(Model& model, bool constants_inside) {
  if (!plain(model)) return;
  Around around(model, !constants_inside);
  Graph& graph = around.model.graph();
  Value& condition = graph.add_input(graph.unique_name("wrapped_if"), Type::tensor(DType::boolean, Shape::of({})));
  Node& node = graph.add("If", {&condition}, {.outputs = model.graph().outputs().size()});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto body = std::make_shared<Graph>(&node);
    body->name = branch;
    Copies copies = around.copies;
    copy_into(model.graph(), *body, copies, constants_inside);
    for (const Value* output : model.graph().outputs()) body->add_output(*copies.at(output));
    node.attrs.set(branch, Attr(body));
  }
  finish(around.model, model, node);
  model = around.model;
}

void into_loop(Model& model, bool constants_inside) {
  if (!plain(model)) return;
  Around around(model, !constants_inside);
  Graph& graph = around.model.graph();
  Value& trips = graph.add_input(graph.unique_name("wrapped_trips"), Type::tensor(DType::i64, Shape::of({})));
  Node& node = graph.add("Loop", {&trips, nullptr}, {.outputs = model.graph().outputs().size()});
  auto body = std::make_shared<Graph>(&node);
  body->name = "body";
  body->add_input(body->unique_name("step"), Type::tensor(DType::i64, Shape::of({})));
  Value& more = body->add_input(body->unique_name("more"), Type::tensor(DType::boolean, Shape::of({})));
  Node& again = body->add("Identity", {&more});
  again.output()->type = more.type;
  body->add_output(*again.output());
  Copies copies = around.copies;
  copy_into(model.graph(), *body, copies, constants_inside);
  for (const Value* output : model.graph().outputs()) body->add_output(*copies.at(output));
  node.attrs.set("body", Attr(body));
  finish(around.model, model, node);
  model = around.model;
}

/// An If both of whose branches read the value.
void read_inside(Model& model, Value& value) {
  Graph& graph = value.graph();
  Value& condition = model.graph().add_input(graph.unique_name("read_if"), Type::tensor(DType::boolean, Shape::of({})));
  Node& node = graph.add("If", {&condition});
  for (const auto& [branch, op] : {std::pair{"then_branch", "Neg"}, std::pair{"else_branch", "Identity"}}) {
    auto body = std::make_shared<Graph>(&node);
    body->name = branch;
    Node& reader = body->add(op, {&value});
    reader.output()->type = Type::tensor(value.dtype());
    body->add_output(*reader.output());
    node.attrs.set(branch, Attr(body));
  }
  node.output()->type = Type::tensor(value.dtype());
  graph.add_output(*node.output());
}

void of_value(const Model& model, const Value& value, Mutations& out) {
  const Model* original = &model;
  const Value* place = &value;
  const auto add = [&](const std::string& what, const std::function<void(Model&, Value&)>& change) {
    out.push_back({value.name() + " " + what, [=](Model& copy) { change(copy, same_value(copy, *original, *place)); }});
  };
  if (&value.graph() != &original->graph()) return;
  if (!value.is_graph_output())
    add("is an output too", [](Model& copy, Value& same) { copy.graph().add_output(same); });
  const char* reader = value.type.is_tensor() && value.dtype() != DType::boolean ? "Neg" : "Identity";
  add("has a further reader",
      [=](Model& copy, Value& same) { copy.graph().add_output(*copy.graph().add(reader, {&same}).output()); });
  if (value.type.is_tensor()) add("is read in a subgraph", read_inside);
}

}  // namespace

void mutate_readers(const Model& model, Mutations& out) {
  for (const auto& node : model.graph().nodes())
    for (const Value* output : node->outputs())
      if (output) of_value(model, *output, out);
  for (const bool inside : {false, true}) {
    const std::string constants = inside ? "" : ", constants outside";
    out.push_back({"all in the branches of an If" + constants, [=](Model& copy) { into_branches(copy, inside); }});
    out.push_back({"all in the body of a Loop" + constants, [=](Model& copy) { into_loop(copy, inside); }});
  }
  // As exporters name them: other graphs have the same names.
  out.push_back({"nodes have names", [](Model& copy) {
                   for (Graph* graph : all_graphs(copy)) {
                     int number = 0;
                     for (const auto& node : graph->nodes()) node->name = "n" + std::to_string(number++);
                   }
                 }});
  for (std::size_t i = 0; i + 1 < model.graph().inputs().size(); ++i)
    out.push_back({"inputs " + std::to_string(i) + " and " + std::to_string(i + 1) + " are one", [=](Model& copy) {
                     Graph& graph = copy.graph();
                     Value &kept = *graph.inputs()[i], &gone = *graph.inputs()[i + 1];
                     if (kept.dtype() != gone.dtype() || gone.is_initializer()) return;
                     while (!gone.uses().empty()) {
                       const Use use = gone.uses().front();
                       use.node->graph().set_input(*use.node, use.index, &kept);
                     }
                     if (!gone.is_graph_output()) graph.remove_input(i + 1);
                   }});
}

}  // namespace modelflow::obligations
