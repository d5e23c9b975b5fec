// Fused nodes that some kernel takes, and constants of a node's own.
#include "passes/graph/edits.h"

#include "modelflow/function.h"
#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

Node* make_fused(Graph& graph, Context& context, std::string_view rule, std::string_view op, std::vector<Value*> inputs,
                 Attrs attrs, Node& before, std::size_t outputs) {
  Node& node = graph.add(op, std::move(inputs),
                         {.before = &before, .outputs = outputs, .attrs = std::move(attrs), .name = before.name});
  complete(node);
  infer_types(node, context.model);
  const Verdict verdict = may_stay(node, context);
  if (verdict) return &node;
  context.miss(rule, &before, verdict.reason);
  graph.erase(node);
  return nullptr;
}

void take_place(Node& fused, Node& node, Context& context, std::string_view rule, Extents& extents) {
  fused.doc = node.doc;
  extents.forget(*node.output());
  Graph& graph = node.graph();
  graph.replace(*node.output(), *fused.output());
  graph.erase(node);
  context.hit(rule);
}

Value& with_axes(Build& build, const char* op, Value& x, const Ints& axes) {
  if (build.opset() < 13) return build.op(op, {&x}, {{"axes", axes}});
  return build.op(op, {&x, &build.constant(tensor_of(axes), "axes")});
}

Value& slice(Build& build, Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  if (build.opset() < 10)
    return build.op("Slice", {&x}, {{"axes", Ints{axis}}, {"starts", Ints{begin}}, {"ends", Ints{end}}});
  const auto list = [&](std::int64_t n, const char* stem) { return &build.constant(tensor_of({n}), stem); };
  return build.op("Slice", {&x, list(begin, "starts"), list(end, "ends"), list(axis, "axes")});
}

Value* in_graph(Graph& graph, Value* value) {
  if (!value || &value->graph() == &graph || !value->constant()) return value;
  return &graph.add_constant(*value->constant(), value->name());
}

void set_constant(Node& node, std::size_t input, Tensor tensor) {
  Graph& graph = node.graph();
  const std::string stem = node.input(input)->name();
  graph.set_input(node, input, &graph.add_constant(std::move(tensor), stem));
}

}  // namespace modelflow::passes
