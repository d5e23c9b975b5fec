// Nodes: related ops in their place, operands exchanged, taken from elsewhere or left out, something between two nodes.
#include <algorithm>
#include <set>

#include "tests/obligations/mutation.h"
#include "tests/obligations/schemas.h"

namespace modelflow::obligations {
namespace {

/// Ops that take the same operands.
const std::vector<std::vector<std::string>> kFamilies = {
    {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod"},
    {"Relu",     "Sigmoid",  "Tanh",      "Exp",         "Log",       "Sqrt",     "Neg",    "Abs",
     "Erf",      "Softplus", "Elu",       "HardSigmoid", "LeakyRelu", "Floor",    "Round",  "Reciprocal",
     "Identity", "Sign",     "HardSwish", "Gelu",        "Mish",      "Softsign", "Dropout"},
    {"Softmax", "LogSoftmax", "Hardmax"},
    {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
     "ReduceLogSumExp"},
    {"MaxPool", "AveragePool", "LpPool"},
    {"GlobalAveragePool", "GlobalMaxPool"},
    {"MatMul", "Gemm"},
    {"Conv", "ConvTranspose"},
    {"ArgMax", "ArgMin"},
    {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"},
    {"And", "Or", "Xor"},
    {"Reshape", "Expand", "Tile"},
    {"Squeeze", "Unsqueeze"},
    {"Concat", "Sum", "Max", "Mean"},
    {"Gather", "GatherElements", "GatherND"},
    {"LSTM", "GRU", "RNN"},
    {"Shape", "Size"}};

void ops(const NodePlace& place) {
  if (!place.node.domain().empty()) return;
  std::set<std::string> others;
  for (const std::vector<std::string>& family : kFamilies)
    if (std::ranges::find(family, place.node.op()) != family.end()) others.insert(family.begin(), family.end());
  others.erase(place.node.op());
  for (const std::string& op : others) place.add("becomes " + op, [=](Node& node) { node.graph().set_op(node, op); });
}

/// A node of one input and one output in front of one operand.
void between(const NodePlace& place, std::size_t input) {
  const auto insert = [&](const std::string& op, const Attrs& attrs) {
    place.add("operand " + std::to_string(input) + " behind " + op, [=](Node& node) {
      Graph& graph = node.graph();
      Node& made = graph.add(op, {node.input(input)}, {.before = &node, .outputs = 1, .attrs = attrs});
      graph.set_input(node, input, made.output());
    });
  };
  const Value& value = *place.node.input(input);
  insert("Identity", {});
  if (!value.type.is_tensor()) return;
  if (is_float(value.dtype())) {
    for (const char* op : {"Relu", "Neg", "Abs", "Sigmoid", "Softmax"}) insert(op, {});
    insert("Cast", {{"to", Attr(std::int64_t{10})}});
  }
  if (!value.shape().has_rank() || value.shape().rank() < 2) return;
  const auto rank = static_cast<std::int64_t>(value.shape().rank());
  Ints reversed, swapped;
  for (std::int64_t i = 0; i < rank; ++i) reversed.push_back(rank - 1 - i), swapped.push_back(i);
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  insert("Transpose", {{"perm", Attr(reversed)}});
  if (rank > 2) insert("Transpose", {{"perm", Attr(swapped)}});
  insert("Flatten", {});
  insert("MaxPool", {{"kernel_shape", Attr(Ints(static_cast<std::size_t>(std::max<std::int64_t>(rank - 2, 1)), 1))}});
}

bool same_kind(const Value& a, const Value& b) {
  return a.type.is_tensor() && b.type.is_tensor() && a.dtype() == b.dtype();
}

/// The operand is another value of its type that is there already.
void elsewhere(const NodePlace& place, std::size_t input, const std::vector<const Value*>& before) {
  const Value& now = *place.node.input(input);
  for (const Value* other : before) {
    if (other == &now || !same_kind(*other, now)) continue;
    const std::string name = other->name();
    place.add("operand " + std::to_string(input) + " is " + name, [=](Node& node) {
      if (Value* value = node.graph().find(name)) node.graph().set_input(node, input, value);
    });
  }
}

void operands(const NodePlace& place, const Model& model, const std::vector<const Value*>& before) {
  const Node& node = place.node;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    if (!node.input(i)) continue;
    between(place, i);
    elsewhere(place, i, before);
    for (std::size_t k = i + 1; k < std::min<std::size_t>(node.inputs().size(), 4); ++k)
      place.add("operands " + std::to_string(i) + " and " + std::to_string(k) + " exchanged", [=](Node& n) {
        Value *a = n.input(i), *b = n.input(k);
        n.graph().set_input(n, i, b);
        n.graph().set_input(n, k, a);
      });
  }
  for (const std::size_t i : optional_inputs(node, model))
    if (node.input(i))
      place.add("without operand " + std::to_string(i), [=](Node& n) {
        n.graph().set_input(n, i, nullptr);
        while (!n.inputs().empty() && !n.inputs().back()) n.graph().resize_inputs(n, n.inputs().size() - 1);
      });
}

/// What reads the node reads one of its operands.
void bypass(const NodePlace& place) {
  if (place.node.outputs().size() != 1 || !place.node.output()) return;
  for (std::size_t i = 0; i < place.node.inputs().size(); ++i) {
    const Value* input = place.node.input(i);
    if (!input || !same_kind(*input, *place.node.output()) || &input->graph() != &place.node.graph()) continue;
    place.add("left out, operand " + std::to_string(i) + " in its place",
              [=](Node& node) { node.graph().replace(*node.output(), *node.input(i)); });
  }
}

/// One of several readers reads a copy of the node.
void twice(const NodePlace& place) {
  const Value* output = place.node.output();
  if (!output || output->uses().empty() || !place.node.subgraphs().empty()) return;
  place.add("written twice", [](Node& node) {
    Graph& graph = node.graph();
    const Use use = node.output()->uses().front();
    const std::string op = node.domain().empty() ? node.op() : node.domain() + ":" + node.op();
    Node& made = graph.add(op, node.inputs(), {.before = &node, .outputs = node.outputs().size(), .attrs = node.attrs});
    if (&use.node->graph() == &graph) graph.set_input(*use.node, use.index, made.output());
  });
  place.add("twice in a row", [](Node& node) {
    Graph& graph = node.graph();
    const std::string op = node.domain().empty() ? node.op() : node.domain() + ":" + node.op();
    std::vector<Value*> inputs = node.inputs();
    if (inputs.empty() || !inputs[0]) return;
    Node& made = graph.add(op, inputs, {.before = &node, .outputs = node.outputs().size(), .attrs = node.attrs});
    graph.set_input(node, 0, made.output());
  });
}

}  // namespace

void mutate_nodes(const Model& model, Mutations& out) {
  const std::vector<Node*> nodes = all_nodes(model);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodePlace place{*nodes[i], i, out};
    std::vector<const Value*> before;
    for (const Value* value : nodes[i]->graph().inputs()) before.push_back(value);
    for (const Value* value : nodes[i]->graph().initializers()) before.push_back(value);
    for (const auto& earlier : nodes[i]->graph().nodes()) {
      if (earlier.get() == nodes[i]) break;
      for (const Value* value : earlier->outputs())
        if (value) before.push_back(value);
    }
    ops(place);
    operands(place, model, before);
    bypass(place);
    twice(place);
  }
}

}  // namespace modelflow::obligations
