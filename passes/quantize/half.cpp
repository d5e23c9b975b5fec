// A model for a GPU in floats of 16 bits: values between its ops, and weights. Inputs and outputs of the model stay
// float32, and so does what HalfPlaces keeps; between the two stands one Cast for each value.
#include "src/core/half.h"

#include <map>
#include <vector>

#include "modelflow/modelflow.h"
#include "passes/quantize/half_masks.h"
#include "passes/quantize/half_places.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

/// The node of `graph` that stands around this one, or itself.
Node& standing_in(const Graph& graph, Node& node) {
  Node* at = &node;
  while (&at->graph() != &graph) at = at->graph().parent();
  return *at;
}

class ToHalf {
 public:
  ToHalf(Graph& graph, Context& context, DType half)
      : graph_(graph), context_(context), half_(half), places_(graph, context, half), masks_(graph, context, half) {}

  int run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    find_captures(nodes);
    for (Node* node : nodes) {
      const bool half = places_.computes(*node);
      if (!takes_any(*node)) read(*node, half);
      for (const auto& [use, value] : captured_[node])
        use.node->graph().set_input(*use.node, use.index, &cast(*value, DType::f32, node));
      if (half) write(*node);
    }
    for (Value* output : std::vector<Value*>(graph_.outputs()))
      if (output->producer() && places_.computes(*output->producer()) && output->dtype() == half_) give_single(*output);
    if (changes_) graph_.prune();
    if (changes_) context_.hit("to-half", changes_);
    return changes_;
  }

 private:
  /// What graphs inside of nodes read of values that change: they go on in float32.
  void find_captures(const std::vector<Node*>& nodes) {
    for (const Node* node : nodes) {
      if (!places_.computes(*node)) continue;
      for (Value* value : node->outputs())
        if (is_single(value))
          for (const Use& use : value->uses())
            if (&use.node->graph() != &graph_) captured_[&standing_in(graph_, *use.node)].emplace_back(use, value);
    }
  }

  void read(Node& node, bool half) {
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      Value* value = node.input(i);
      const bool half_operand = half && !stays_single(node, i);
      if (half_operand && is_single(value))
        graph_.set_input(node, i, value->constant() ? &constant(*value) : &narrowed(*value, node, i));
      else if (!half_operand && value && value->dtype() == half_ && changed_.contains(value))
        graph_.set_input(node, i, &cast(*value, DType::f32, &node));
    }
  }

  void write(Node& node) {
    if (node.is("Cast")) node.attrs.set("to", static_cast<std::int64_t>(half_));
    if (const Tensor* value = node.attrs.tensor("value"); value && value->dtype() == DType::f32)
      node.attrs.set("value", to_half(*value, half_));
    for (Value* output : node.outputs()) {
      if (!is_single(output)) continue;
      output->type.dtype = half_;
      changed_.insert(output);
      ++changes_;
    }
  }

  Value& constant(Value& value) {
    const auto [place, fresh] = constants_.try_emplace(&value, nullptr);
    if (fresh) place->second = &graph_.add_constant(to_half(*value.constant(), half_), value.name());
    return *place->second;
  }

  Value& narrowed(Value& value, Node& reader, std::size_t input) {
    return cast(masks_.bounded(value, reader, input), half_, &reader);
  }

  Value& cast(Value& value, DType to, Node* reader = nullptr) {
    const auto [place, fresh] = casts_.try_emplace(&value, nullptr);
    if (!fresh) return *place->second;
    Node& made = graph_.add("Cast", {&value}, {.before = reader, .attrs = {{"to", static_cast<std::int64_t>(to)}}});
    made.output()->type = Type::tensor(to, value.shape());
    return *(place->second = made.output());
  }

  /// The Cast takes the output's name; whatever else reads the value reads what it did.
  void give_single(Value& output) {
    Value& single = cast(output, DType::f32);
    const std::vector<Use> readers = output.uses();
    graph_.replace(output, single);
    single.type.dtype = DType::f32;
    output.type.dtype = half_;
    for (const Use& use : readers) use.node->graph().set_input(*use.node, use.index, &output);
  }

  Graph& graph_;
  Context& context_;
  const DType half_;
  HalfPlaces places_;
  HalfMasks masks_;
  std::unordered_set<const Value*> changed_;
  std::map<const Node*, std::vector<std::pair<Use, Value*>>> captured_;
  std::map<const Value*, Value*> constants_, casts_;
  int changes_ = 0;
};

}  // namespace

Pass to_half(DType half) {
  return {
      .name = "to-half",
      .doc = "Values between ops of a GPU, and weights, in float16 or bfloat16; Casts where float32 begins and ends",
      .run = [half](Graph& graph, Context& context) { return context.plan ? ToHalf(graph, context, half).run() : 0; },
      .whole_model = true};
}

}  // namespace modelflow::passes
