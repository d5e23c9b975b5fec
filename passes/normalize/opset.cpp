// Scales per channel (DequantizeLinear with an axis) and bfloat16 came with opset 13. Between 11 and 13 five ops
// changed their form.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kFrom = 11, kTo = 13;

/// What was the attribute `name` becomes input `index`.
void attribute_to_input(Node& node, const std::string& name, std::size_t index) {
  if (!node.attrs.has(name)) return;
  const Ints values = node.attrs.ints(name);
  const Dims dims = {static_cast<std::int64_t>(values.size())};
  Graph& graph = node.graph();
  if (node.inputs().size() <= index) graph.resize_inputs(node, index + 1);
  graph.set_input(node, index, &graph.add_constant(Tensor::of<std::int64_t>(dims, values), name));
  node.attrs.erase(name);
}

/// Before 13 everything from the axis on was one dimension, and the axis counted from 1.
Verdict softmax(Node& node) {
  const Shape& x = node.input(0)->shape();
  if (!x.has_rank()) return no("rank unknown", node.input(0)->name());
  const auto rank = static_cast<std::int64_t>(x.rank());
  std::int64_t axis = node.attrs.integer("axis", 1);
  if (axis < 0) axis += rank;
  for (std::int64_t i = axis + 1; i < rank; ++i)
    if (!(x[static_cast<std::size_t>(i)] == Dim(1))) return no("it spans several axes", node.label());
  node.attrs.set("axis", Attr(axis));
  return yes();
}

/// The ratio was an attribute until 12; nothing but training reads it.
void dropout(Node& node) { node.attrs.erase("ratio"); }

Verdict adapt(Node& node) {
  if (node.is("Softmax") || node.is("LogSoftmax") || node.is("Hardmax")) return softmax(node);
  if (node.is("Squeeze") || node.is("Unsqueeze") || node.is("ReduceSum")) attribute_to_input(node, "axes", 1);
  if (node.is("Split")) attribute_to_input(node, "split", 1);
  if (node.is("Dropout")) dropout(node);
  return yes();
}

Verdict adapt(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (Verdict verdict = adapt(*node); !verdict) return verdict;
    for (Graph* inner : node->subgraphs())
      if (Verdict verdict = adapt(*inner); !verdict) return verdict;
  }
  return yes();
}

bool arrives_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) {
    return node->is("DequantizeLinear") || node->is("QLinearConv") || node->is("QLinearMatMul");
  });
}

int run(Graph& graph, Context& context) {
  const std::int64_t opset = context.model.opset();
  if (opset >= kTo) return 0;
  const Precision precision = context.options.precision;
  const bool bf16 = precision == Precision::bf16 || precision == Precision::bf16_weights;
  const bool any_opset = precision == Precision::f32 || precision == Precision::f16;
  if (any_opset && !arrives_quantized(graph)) return 0;
  Verdict verdict = opset < kFrom ? no("the model has opset " + std::to_string(opset)) : yes();
  if (verdict && !context.model.functions.empty()) verdict = no("the model has functions of its own");
  if (verdict) {
    Model raised = context.model;  // all or nothing
    verdict = adapt(raised.graph());
    if (verdict) verdict = adapt(graph);
  }
  if (!verdict) {
    context.note(std::string(bf16 ? "bfloat16 needs" : "8 bits need") +
                 " opset 13, and this model cannot be raised to it: " + verdict.reason);
    return 0;
  }
  context.model.opsets[""] = kTo;
  context.note("opset raised from " + std::to_string(opset) +
               " to 13: " + (bf16 ? "casts to bfloat16 need it" : "scales per channel need it"));
  return 1;
}

}  // namespace

Pass raise_opset() {
  return {.name = "raise-opset",
          .doc =
              "Opset 11 and 12 to 13, for lower precision and models that arrive quantized: scales per channel came "
              "with it",
          .run = run,
          .whole_model = true};
}

}  // namespace modelflow::passes
