// Floats of 16 bits spelled out: an op in float32, a Cast to the smaller type and one back.
#include "src/precision/rounded.h"

#include <algorithm>
#include <vector>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "src/core/half.h"

namespace modelflow {
namespace {

Value& cast(Graph& graph, Value& value, DType to, Node* before) {
  Node& made = graph.add("Cast", {&value}, {.before = before, .attrs = {{"to", static_cast<std::int64_t>(to)}}});
  made.output()->type = Type::tensor(to, value.shape());
  return *made.output();
}

class Rounded {
 public:
  Rounded(Graph& graph, DType half) : graph_(graph), half_(half) {}

  void run() {
    const std::vector<Value*> outputs = graph_.outputs();
    const std::vector<Value*> halves = short_ones(outputs);  // before their types change
    change(graph_);
    for (Value* output : halves)
      if (output->producer() || output->constant()) give_short(*output);
  }

 private:
  bool is_short(const Value* value) const { return value && value->type.is_tensor() && value->dtype() == half_; }

  std::vector<Value*> short_ones(const std::vector<Value*>& values) const {
    std::vector<Value*> found;
    std::ranges::copy_if(values, std::back_inserter(found), [&](const Value* value) { return is_short(value); });
    return found;
  }

  void change(Graph& graph) {
    for (Value* value : graph.initializers())
      if (value->constant() && is_short(value)) {
        graph.set_initializer(*value, in_float32(*value->constant()));
        value->type.dtype = DType::f32;
      }
    std::vector<Node*> nodes;
    for (const auto& node : graph.nodes()) nodes.push_back(node.get());
    for (Value* input : short_ones(graph.inputs())) take(graph, *input, nodes.empty() ? nullptr : nodes.front());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      change(*nodes[i]);
      for (Value* output : nodes[i]->outputs()) {
        if (output && !output->type.is_tensor() && !output->is_graph_output()) output->type = {};  // of sequences
        if (!is_short(output)) continue;
        output->type.dtype = DType::f32;
        if (!passes::is_view(*nodes[i])) round(graph, *output, i + 1 < nodes.size() ? nodes[i + 1] : nullptr);
      }
    }
  }

  void change(Node& node) {
    for (Graph* inner : node.subgraphs()) change(*inner);
    for (auto& [name, value] : node.attrs)
      if (auto* tensor = std::get_if<Tensor>(&value); tensor && tensor->dtype() == half_) *tensor = in_float32(*tensor);
    for (const char* type : {"to", "dtype", "output_dtype"})
      if (node.attrs.integer(type) == static_cast<std::int64_t>(half_))
        node.attrs.set(type, static_cast<std::int64_t>(DType::f32));
  }

  /// What callers give keeps its type; what an iteration gives to the next is rounded on the way.
  void take(Graph& graph, Value& input, Node* before) {
    if (&graph != &graph_) {
      input.type.dtype = DType::f32;
      return round(graph, input, before);
    }
    const std::vector<Use> readers = input.uses();
    redirect(readers, cast(graph, input, DType::f32, before));
  }

  /// What reads the value reads it rounded from now on.
  void round(Graph& graph, Value& value, Node* before) {
    const std::vector<Use> readers = value.uses();
    redirect(readers, cast(graph, cast(graph, value, half_, before), DType::f32, before));
  }

  void redirect(const std::vector<Use>& readers, Value& by) {
    for (const Use& use : readers) use.node->graph().set_input(*use.node, use.index, &by);
  }

  /// The Cast takes the output's name.
  void give_short(Value& output) {
    const std::vector<Use> readers = output.uses();
    Value& made = cast(graph_, output, half_, nullptr);
    graph_.replace(output, made);
    made.type.dtype = half_;
    output.type.dtype = DType::f32;
    redirect(readers, output);
    graph_.set_input(*made.producer(), 0, &output);
  }

  Graph& graph_;
  const DType half_;
};

}  // namespace

Model rounded_in_float32(const Model& model, DType half) {
  Model made = inline_functions(model);
  infer_types(made);
  Rounded(made.graph(), half).run();
  return made;
}

}  // namespace modelflow
