// The changes: constants, attributes, operands, spellings of constants, ops put between, readers added.
#include "tests/fuzz/change.h"

#include <algorithm>
#include <set>

#include "tests/all_graphs.h"
#include "tests/fuzz/elements.h"
#include "tests/fuzz/glue.h"

namespace modelflow::fuzz {
namespace {

using Int = std::int64_t;

struct Scene {
  Model& model;
  Graph& graph;
  Dice& dice;
  std::vector<Node*> nodes;       ///< of `graph`
  std::vector<Value*> constants;  ///< of `graph`

  Node& node() const { return *dice.pick(nodes); }
};

Scene scene(Model& model, Dice& dice) {
  const std::vector<Graph*> graphs = all_graphs(model);
  Scene s{model, *(dice.chance(0.7) ? graphs[0] : dice.pick(graphs)), dice, {}, {}};
  for (const auto& node : s.graph.nodes()) s.nodes.push_back(node.get());
  for (Value* value : s.graph.initializers())
    if (value->constant()) s.constants.push_back(value);
  return s;
}

bool is_float_type(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16; }

bool constant_nudged(const Scene& s) {
  if (s.constants.empty()) return false;
  Value& value = *s.dice.pick(s.constants);
  const Tensor& tensor = *value.constant();
  for (const Use& use : value.uses())
    if (use.node->op().find("Linear") != std::string::npos) return false;  // scales: 0 and below mean nothing
  if (tensor.elements() == 0 || tensor.dtype() == DType::string || bits(tensor.dtype()) < 8) return false;
  std::vector<double> numbers = tensor.to_doubles();
  double& chosen = s.dice.pick(numbers.size() == 1 ? std::vector<double*>{numbers.data()}
                                                   : std::vector<double*>{&numbers[s.dice.below(numbers.size())]})[0];
  if (is_float_type(tensor.dtype())) {
    const std::size_t how = s.dice.below(6);
    chosen = how < 2    ? chosen * (1 + s.dice.any({1e-3, -1e-3, 1e-4, 1e-2}))
             : how == 2 ? -chosen
             : how == 3 ? 0
             : how == 4 ? chosen + 1
                        : chosen * s.dice.any({2.0, 0.5, 10.0});
  } else {
    chosen += s.dice.any({1, -1, -1, 1, 2});
  }
  s.graph.set_initializer(value, tensor_of(tensor.dtype(), tensor.dims(), numbers));
  return true;
}

bool attribute_changed(const Scene& s) {
  Node& node = s.node();
  std::vector<std::string> names;
  for (const auto& [name, attr] : node.attrs)
    if (std::holds_alternative<Int>(attr) || std::holds_alternative<Ints>(attr) || std::holds_alternative<float>(attr))
      names.push_back(name);
  if (names.empty()) return false;
  const std::string name = s.dice.pick(names);
  if (s.dice.chance(0.15)) return node.attrs.erase(name), true;
  Attr attr = *node.attrs.find(name);
  if (auto* integer = std::get_if<Int>(&attr)) {
    static const std::set<std::string> flags = {
        "keepdims",  "transA",    "transB",    "is_causal", "linear_before_reset", "count_include_pad",
        "ceil_mode", "allowzero", "onesided",  "inverse",   "interleaved",         "upper",
        "largest",   "sorted",    "exclusive", "reverse"};
    // ONNX Runtime leaves the last of an odd number of rotated elements to what memory holds.
    const Int step = name == "rotary_embedding_dim" ? 2 : 1;
    *integer = flags.contains(name) ? 1 - *integer : *integer + step * s.dice.any<Int>({1, -1, -1});
  } else if (auto* number = std::get_if<float>(&attr)) {
    *number = s.dice.chance(0.5) ? *number * 1.001F : *number + 0.5F;
  } else {
    Ints& list = std::get<Ints>(attr);
    if (list.empty()) return false;
    if (name == "perm" || s.dice.chance(0.4))
      std::swap(list[s.dice.below(list.size())], list[s.dice.below(list.size())]);
    else
      list[s.dice.below(list.size())] += s.dice.any<Int>({1, -1});
  }
  node.attrs.set(name, attr);
  return true;
}

bool operands_swapped(const Scene& s) {
  Node& node = s.node();
  // Slopes broadcast to x and not the other way: ONNX Runtime takes them all the same.
  if (node.inputs().size() < 2 || node.is("PRelu")) return false;
  Value *a = node.input(0), *b = node.input(1);
  s.graph.set_input(node, 0, b);
  s.graph.set_input(node, 1, a);
  return true;
}

bool becomes_output(const Scene& s) {
  Node& node = *s.dice.pick(s.nodes);
  if (s.graph.parent() || node.outputs().empty()) return false;
  Value* value = s.dice.pick(node.outputs());
  if (!value || value->is_graph_output() || !value->type.is_tensor() || value->dtype() == DType::undefined)
    return false;
  if (s.dice.chance(0.5))
    value = s.graph.add(s.dice.any<const char*>({"Identity", "Identity", "Shape"}), {value}).output();
  s.graph.add_output(*value);
  return true;
}

bool op_replaced(const Scene& s) {
  static const std::vector<std::vector<std::string>> families = {
      {"Add", "Sub", "Mul", "Div"},
      {"Max", "Min", "Add"},
      {"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "Softplus", "Identity", "Exp", "Softsign", "Elu", "Selu"},
      {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare", "ReduceLogSumExp"},
      {"Softmax", "LogSoftmax", "Hardmax"},
      {"MaxPool", "AveragePool"},
      {"GlobalAveragePool", "GlobalMaxPool"},
      {"Greater", "Less", "Equal"},
      {"And", "Or", "Xor"},
      {"Floor", "Ceil", "Round"},
  };
  Node& node = s.node();
  for (const auto& family : families)
    if (node.domain().empty() && std::find(family.begin(), family.end(), node.op()) != family.end())
      return s.graph.set_op(node, s.dice.pick(family)), true;
  return false;
}

/// A constant as exporters of all kinds write them: a Constant node, a default of an input, plain input, a view.
bool constant_respelled(const Scene& s) {
  if (s.constants.empty()) return false;
  Value& value = *s.dice.pick(s.constants);
  const Tensor tensor = *value.constant();
  if (value.uses().empty() || value.is_graph_output()) return false;
  const Use use = s.dice.pick(value.uses());
  Graph& there = use.node->graph();
  Value* by = nullptr;
  switch (s.dice.below(5)) {
    case 0:
      by = there.add("Constant", {}, {.before = use.node, .attrs = {{"value", tensor}}}).output();
      break;
    case 1:
      if (s.graph.parent()) return false;
      by = &s.graph.add_input(s.graph.unique_name("given"), value.type);
      s.graph.set_initializer(*by, tensor);
      break;
    case 2:
      if (s.graph.parent() || !is_float_type(tensor.dtype())) return false;
      by = &s.graph.add_input(s.graph.unique_name("given"), value.type);
      break;
    case 3:
      by = there.add("Identity", {&value}, {.before = use.node}).output();
      break;
    default:
      by = &there.add_constant(tensor, "copy");
  }
  there.set_input(*use.node, use.index, by);
  return true;
}

bool constant_reshaped(const Scene& s) {
  if (s.constants.empty()) return false;
  Value& value = *s.dice.pick(s.constants);
  const Tensor tensor = *value.constant();
  Dims dims = tensor.dims();
  if (dims.empty() || s.dice.chance(0.3))
    dims.insert(dims.begin(), 1);
  else if (dims[0] == 1)
    dims.erase(dims.begin());
  else if (dims.back() == 1)
    dims.pop_back();
  else if (s.dice.chance(0.3))
    dims.push_back(1);
  else
    return false;
  s.graph.set_initializer(value, tensor.reshaped(dims));
  return true;
}

bool shares_constant(const Scene& s) {
  if (s.constants.size() < 2) return false;
  Value &a = *s.dice.pick(s.constants), &b = *s.dice.pick(s.constants);
  if (&a == &b || a.constant()->dtype() != b.constant()->dtype() || a.constant()->dims() != b.constant()->dims())
    return false;
  s.graph.replace(a, b);
  return true;
}

bool put_between(const Scene& s) {
  Node& node = s.node();
  if (node.inputs().empty()) return false;
  const std::size_t index = s.dice.below(node.inputs().size());
  Value* value = node.input(index);
  if (!value || !value->type.is_tensor() || !is_float_type(value->dtype())) return false;
  const auto one = [&](std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return s.graph.add(op, std::move(inputs), {.before = &node, .attrs = std::move(attrs)}).output();
  };
  Value* by = nullptr;
  switch (s.dice.below(6)) {
    case 0:
      by = one(s.dice.any<const char*>({"Identity", "Relu", "Neg", "Abs", "Tanh"}), {value});
      break;
    case 1:
      by = one("Cast", {value}, {{"to", static_cast<Int>(value->dtype())}});
      break;
    case 2:
      by = one("Cast", {one("Cast", {value}, {{"to", static_cast<Int>(DType::f16)}})},
               {{"to", static_cast<Int>(value->dtype())}});
      break;
    case 3: {
      if (!value->shape().has_rank() || value->shape().rank() < 2) return false;
      Ints perm(value->shape().rank());
      for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<Int>(i);
      std::swap(perm[s.dice.below(perm.size())], perm.back());
      by = one("Transpose", {value}, {{"perm", perm}});
      if (s.dice.chance(0.8)) by = one("Transpose", {by}, {{"perm", perm}});
      break;
    }
    case 4:
      by = one(
          s.dice.any<const char*>({"Mul", "Add", "Div"}),
          {value, &s.graph.add_constant(tensor_of(value->dtype(), {}, {s.dice.any({1.0, 0.0, 1.001, 2.0, -1.0})}))});
      break;
    default:
      by = one("Dropout", {value});
  }
  s.graph.set_input(node, index, by);
  return true;
}

bool rewired(const Scene& s) {
  Node& node = s.node();
  if (node.inputs().empty()) return false;
  const std::size_t index = s.dice.below(node.inputs().size());
  Value* value = node.input(index);
  if (!value || !value->type.is_tensor()) return false;
  std::vector<Value*> others = s.graph.inputs();
  for (Value* constant : s.constants) others.push_back(constant);
  for (Node* before : s.nodes) {
    if (before == &node) break;
    for (Value* output : before->outputs())
      if (output) others.push_back(output);
  }
  std::erase_if(others, [&](Value* other) {
    if (other == value || other->dtype() != value->dtype()) return true;
    return !other->shape().has_rank() || !value->shape().has_rank() ||
           (other->shape().rank() != value->shape().rank() && s.dice.chance(0.9));
  });
  if (others.empty()) return false;
  s.graph.set_input(node, index, s.dice.pick(others));
  return true;
}

bool reader_added(const Scene& s) {
  Node& node = s.node();
  if (s.graph.parent() || node.outputs().empty()) return false;
  Value* value = s.dice.pick(node.outputs());
  if (!value || !value->type.is_tensor() || !is_float_type(value->dtype())) return false;
  s.graph.add_output(*s.graph.add(s.dice.any<const char*>({"Neg", "Relu", "Sigmoid"}), {value}).output());
  return true;
}

bool computed_twice(const Scene& s) {
  Node& node = s.node();
  if (node.outputs().size() != 1 || !node.output() || node.output()->uses().size() < 2 || !node.subgraphs().empty())
    return false;
  const Use use = s.dice.pick(node.output()->uses());
  if (&use.node->graph() != &s.graph) return false;
  Node& copy = s.graph.add((node.domain().empty() ? "" : node.domain() + ":") + node.op(), node.inputs(),
                           {.before = use.node, .attrs = node.attrs});
  s.graph.set_input(*use.node, use.index, copy.output());
  return true;
}

bool optional_dropped(const Scene& s) {
  Node& node = s.node();
  if (node.inputs().size() < 2) return false;
  s.graph.set_input(node, 1 + s.dice.below(node.inputs().size() - 1), nullptr);
  return true;
}

bool extents_changed(const Scene& s) {
  if (s.model.graph().inputs().empty()) return false;
  Value& input = *s.dice.pick(s.model.graph().inputs());
  if (input.is_initializer() || !input.type.is_tensor() || !input.shape().has_rank() || input.shape().rank() == 0)
    return false;
  std::vector<Dim> dims = input.shape().dims();
  Dim& dim = dims[s.dice.below(dims.size())];
  if (dim.known())
    dim =
        s.dice.chance(0.6) ? Dim::symbol(s.dice.any<const char*>({"N", "S", "T"})) : Dim(s.dice.any<Int>({1, 1, 2, 3}));
  else
    dim = s.dice.chance(0.5)   ? Dim::symbol(s.dice.any<const char*>({"N", "S", "T", "U"}))
          : s.dice.chance(0.3) ? Dim()
                               : Dim(s.dice.any<Int>({1, 2, 3, 7}));
  input.type.shape = Shape(std::move(dims));
  return true;
}

}  // namespace

void forget_shapes(Model& model) {
  for (Graph* graph : all_graphs(model)) {
    if (graph->parent())
      for (Value* input : graph->inputs())
        if (input->type.is_tensor()) input->type.shape = {};
    for (const auto& node : graph->nodes())
      for (Value* output : node->outputs())
        if (output && output->type.is_tensor()) output->type.shape = {};
  }
}

std::string change(Model& model, Dice& dice) {
  struct Kind {
    const char* name;
    bool (*apply)(const Scene&);
  };
  static const std::vector<Kind> kinds = {
      {"constant nudged", constant_nudged},
      {"attribute changed", attribute_changed},
      {"operands swapped", operands_swapped},
      {"becomes output", becomes_output},
      {"op replaced", op_replaced},
      {"constant respelled", constant_respelled},
      {"constant reshaped", constant_reshaped},
      {"shares constant", shares_constant},
      {"put between", put_between},
      {"rewired", rewired},
      {"reader added", reader_added},
      {"computed twice", computed_twice},
      {"optional dropped", optional_dropped},
      {"extents changed", extents_changed},
      {"put between", put_between},
      {"becomes output", becomes_output},
      {"constant nudged", constant_nudged},
      {"attribute changed", attribute_changed},
  };
  const Scene s = scene(model, dice);
  if (s.nodes.empty()) return "";
  const Kind& kind = dice.pick(kinds);
  return kind.apply(s) ? kind.name : "";
}

void change_floats(Model& model, DType dtype) {
  const auto converted = [&](const Tensor& tensor) { return tensor_of(dtype, tensor.dims(), tensor.to_doubles()); };
  for (Graph* graph : all_graphs(model)) {
    for (Value* value : graph->initializers())
      if (value->initializer()->dtype() == DType::f32) {
        value->type.dtype = dtype;
        graph->set_initializer(*value, converted(*value->initializer()));
      }
    for (Value* input : graph->inputs())
      if (input->dtype() == DType::f32) input->type.dtype = dtype;
    for (const auto& node : graph->nodes()) {
      for (Value* output : node->outputs())
        if (output && output->dtype() == DType::f32) output->type.dtype = dtype;
      for (const char* name : {"to", "dtype"})
        if (node->attrs.has(name) && node->attrs.integer(name) == 1) node->attrs.set(name, static_cast<Int>(dtype));
      if (const Tensor* value = node->attrs.tensor("value"); value && value->dtype() == DType::f32)
        node->attrs.set("value", converted(*value));
    }
  }
}

}  // namespace modelflow::fuzz
