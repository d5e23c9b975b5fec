// Models in float16, for rules and kernels that know float32. On a CPU: ONNX Runtime has no float16 arithmetic there
// and casts around every node, weights included, in every run. Here the whole model computes in float32 instead, with a
// Cast at each float16 input and output. The weights are widened once; nothing is rounded between nodes any more, also
// not where an exporter put a Cast beside an op that it kept in float32. On a GPU the same is done where float16 or
// bfloat16 is asked for: the fused graph goes back to it (to-half). In a float32 model a Cast to float16 is there to
// round: such a model stays as it is.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "modelflow/modelflow.h"
#include "passes/normalize/normalize.h"
#include "src/core/half.h"

namespace modelflow::passes {
namespace {

void for_each_graph(Graph& graph, const std::function<void(Graph&)>& visit) {
  visit(graph);
  for (const auto& node : graph.nodes())
    for (Graph* inner : node->subgraphs()) for_each_graph(*inner, visit);
}

bool is_half(const Value* value) { return value && value->type.is_tensor() && value->dtype() == DType::f16; }

/// All values that a graph names.
std::vector<Value*> values_of(const Graph& graph) {
  std::vector<Value*> values(graph.inputs());
  for (Value* value : graph.initializers())
    if (!value->is_graph_input()) values.push_back(value);
  for (const auto& node : graph.nodes())
    for (Value* value : node->outputs())
      if (value) values.push_back(value);
  return values;
}

/// Standard ops take float32 wherever they take float16; of others nobody knows.
Verdict can_widen(const Node& node) {
  const auto half = [](const std::vector<Value*>& values) {
    for (const Value* value : values)
      if (is_half(value)) return true;
    return false;
  };
  if (!node.domain().empty() && (half(node.inputs()) || half(node.outputs())))
    return no("an op of domain '" + node.domain() + "' computes in float16");
  for (const Value* value : node.outputs())
    if (value && value->type.kind == Type::Kind::other) return no("no tensor", value->name());
  for (const Value* value : node.outputs())
    if (value && !value->type.is_tensor() && half(node.inputs())) return no("its type is not known", value->name());
  for (const Value* value : node.inputs())
    if (value && !value->type.is_tensor() && half(node.outputs())) return no("gives what is no tensor", value->name());
  if (node.is("BitCast")) return no("reads the bits of its input");
  return yes();
}

/// Numbers of formulas that have more digits than float16, by which rules tell the formula: those of GELU and the sixth
/// of HardSwish. A float16 model holds them rounded, which moves results by less than its own steps do.
constexpr double kFormulas[] = {std::numbers::sqrt2, std::numbers::sqrt2 / 2,
                                std::numbers::sqrt2* std::numbers::inv_sqrtpi, 0.044715, 1.0 / 6};

/// The number that `half` is the rounding of, where it is one of those.
double meant(double half) {
  for (const double number : kFormulas) {
    int exponent = 0;
    (void)std::frexp(number, &exponent);
    if (std::abs(half - number) < std::ldexp(0.5, exponent - 11)) return number;
  }
  return half;
}

/// Not so what is compared with it, cut at it or rounded.
bool only_in_arithmetic(const Value& constant) {
  return !constant.is_graph_output() && std::ranges::all_of(constant.uses(), [](const Use& use) {
    const Node& node = *use.node;
    return node.is("Mul") || node.is("Div") || node.is("Add") || node.is("Sub");
  });
}

Tensor widened(const Tensor& half, const Value& constant) {
  std::vector<double> values = half.to_doubles();
  if (values.size() == 1 && only_in_arithmetic(constant)) values[0] = meant(values[0]);
  return Tensor::make(DType::f32, half.dims(), [&](std::byte* out) {
    for (std::size_t i = 0; i < values.size(); ++i) reinterpret_cast<float*>(out)[i] = static_cast<float>(values[i]);
  });
}

/// Attributes that name float16 as an element type, or hold such a tensor.
void widen_attributes(Node& node) {
  const auto half = static_cast<std::int64_t>(DType::f16), single = static_cast<std::int64_t>(DType::f32);
  for (const char* name : {"to", "dtype", "output_dtype", "output_datatype", "softmax_precision", "stash_type"})
    if (node.attrs.has(name) && node.attrs.integer(name) == half) node.attrs.set(name, single);
  if (!node.is("Constant") && !node.is("ConstantOfShape")) return;
  if (const Tensor* value = node.attrs.tensor("value"); value && value->dtype() == DType::f16)
    node.attrs.set("value", widened(*value, *node.output()));
}

/// A Clip that names one bound or none has the largest numbers of its type for the others.
void keep_bounds(Graph& graph) {
  const float most = largest(DType::f16);
  for (const auto& node : graph.nodes()) {
    if (!node->is("Clip") || !is_half(node->input(0)) || node->attrs.has("min") || node->attrs.has("max")) continue;
    for (const std::size_t bound : {1, 2}) {
      if (node->input(bound)) continue;
      Value& limit = graph.add_constant(Tensor::scalar(bound == 1 ? -most : most), "limit");
      if (node->inputs().size() <= bound) graph.resize_inputs(*node, bound + 1);
      graph.set_input(*node, bound, &limit);
    }
  }
}

/// `value` goes through a Cast for everything that reads it in `readers`.
Node& add_cast(Graph& graph, Value& value, DType to, Node* before) {
  Node& cast = graph.add("Cast", {&value}, {.before = before, .attrs = Attrs{{"to", static_cast<std::int64_t>(to)}}});
  cast.output()->type = Type::tensor(to, value.shape());
  return cast;
}

void cast_inputs(Graph& graph) {
  for (Value* input : graph.inputs()) {
    if (!is_half(input) || input->uses().empty()) continue;
    const std::vector<Use> readers = input->uses();
    Node& cast = add_cast(graph, *input, DType::f32, graph.nodes().empty() ? nullptr : graph.nodes().front().get());
    for (const Use& use : readers) use.node->graph().set_input(*use.node, use.index, cast.output());
  }
}

/// The Cast takes the output's name; whatever else read the value goes on reading it.
void cast_outputs(Graph& graph) {
  for (Value* output : std::vector<Value*>(graph.outputs())) {
    if (!is_half(output) || output->is_graph_input()) continue;
    const std::vector<Use> readers = output->uses();
    Node& cast = add_cast(graph, *output, DType::f16, nullptr);
    graph.replace(*output, *cast.output());
    graph.set_input(cast, 0, output);
    for (const Use& use : readers) use.node->graph().set_input(*use.node, use.index, output);
  }
}

/// Casts between the two types do nothing any more, and would stand in the way of patterns.
void drop_casts(Graph& graph) {
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node& node = **it++;
    Value* output = node.output();
    if (!node.is("Cast") || output->is_graph_output() || node.input(0)->dtype() != output->dtype()) continue;
    if (output->dtype() != DType::f32) continue;
    graph.replace(*output, *node.input(0));
    graph.erase(node);
  }
}

/// What a model knows is in its weights: one whose weights are float16 for the most part is a float16 model, and one
/// without any where nothing comes in as another float.
Verdict is_half_model(Graph& graph) {
  std::int64_t halves = 0, others = 0;
  const auto count = [&](const Value* value, std::int64_t elements) {
    const bool widened = std::ranges::all_of(value->uses(), [](const Use& use) { return use.node->is("Cast"); });
    if (is_half(value) && (value->is_graph_input() || !widened))
      halves += elements;
    else if (value->type.is_tensor() && is_float(value->dtype()))
      others += elements;
  };
  for_each_graph(graph, [&](Graph& inner) {
    for (const Value* value : inner.initializers())
      if (value->constant() && value->constant()->elements() > 1) count(value, value->constant()->elements());
  });
  if (halves + others > 0) return halves > others ? yes() : no("most of the model's weights are not float16");
  for (const Value* input : graph.inputs()) count(input, 1);
  return halves > 0 && others == 0 ? yes() : no("there are no float16 weights, and inputs of other types");
}

/// Values that annotations or training info name, and weights that it gives new numbers, keep their type.
Verdict is_free(Graph& graph) {
  Verdict verdict = yes();
  for_each_graph(graph, [&](Graph& inner) {
    for (const std::string& name : inner.pinned) {
      const Value* value = inner.find(name);
      if (value && is_half(value) && (&inner != &graph || value->constant()))
        verdict = no("'" + name + "' is named by other parts of the model");
    }
  });
  return verdict;
}

int run(Graph& graph, Context& context) {
  bool any = false, possible = context.target.device == Device::cpu || half_type(context.options) != DType::undefined;
  const bool asked = possible;
  for_each_graph(graph, [&](Graph& inner) {
    for (const auto& node : inner.nodes()) {
      const bool computes = !node->is("Cast") && (is_half(node->input(0)) || is_half(node->output()));
      any = any || computes;
      const Verdict verdict = can_widen(*node);
      if (verdict || !possible) continue;
      possible = false;
      context.miss("widen-float16", node.get(), verdict.reason);
    }
  });
  if (any && !asked)
    context.miss("widen-float16", nullptr, "a GPU runs it as it is: with --precision fp16 it is fused");
  if (!any || !possible) return 0;
  for (const Verdict& verdict : {is_half_model(graph), is_free(graph)}) {
    if (verdict) continue;
    context.miss("widen-float16", nullptr, verdict.reason);
    return 0;
  }
  if (context.model.opset() >= 12)
    for_each_graph(graph, keep_bounds);  // before, ONNX Runtime's own computes in float32
  for_each_graph(graph, [&](Graph& inner) {
    for (const auto& node : inner.nodes()) widen_attributes(*node);
  });
  cast_outputs(graph);
  std::vector<Value*> halves;
  for_each_graph(graph, [&](Graph& inner) {
    for (Value* value : values_of(inner)) {
      const bool at_border = &inner == &graph && (value->is_graph_input() || value->is_graph_output());
      if (is_half(value) && !at_border) halves.push_back(value);
    }
  });
  cast_inputs(graph);
  for (Value* value : halves) {
    if (value->constant()) value->graph().set_initializer(*value, widened(*value->constant(), *value));
    value->type.dtype = DType::f32;
  }
  for_each_graph(graph, drop_casts);
  context.hit("widen-float16");
  return 1;
}

}  // namespace

Pass widen_float16() {
  return {.name = "widen-float16",
          .doc =
              "A model with float16 weights computes in float32: on a CPU, as it does anyway, without the Casts; on a "
              "GPU until it goes back to 16 bits.",
          .run = run,
          .whole_model = true};
}

}  // namespace modelflow::passes
