// Which values are kept in 8 bits: what convolutions read and write, and what reaches them through ops that only move
// elements. A convolution stays in float where it writes an output of the graph: that is where precision is asked for.
// A transposed one has a form that reads 8 bits and writes floats there.
#include "passes/quantize/quantized_values.h"

#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/quantize/scale.h"
#include "passes/quantize/transposed.h"

namespace modelflow::passes {
namespace {

bool is_float_tensor(const Value* value) { return value && value->dtype() == DType::f32 && !value->is_initializer(); }

Range united(const Range& a, const Range& b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

}  // namespace

bool leads_inside(const Value& value, std::int64_t opset) {
  std::set<const Value*> seen;
  std::vector<const Value*> next = {&value};
  while (!next.empty()) {
    const Value* at = next.back();
    next.pop_back();
    if (!seen.insert(at).second) continue;
    for (const Use& use : at->uses()) {
      if (&use.node->graph() != &value.graph()) return true;
      if (carries(*use.node, opset)) next.push_back(use.node->output());
    }
  }
  return false;
}

Attrs quantized_attrs(const Node& conv) {
  Attrs attrs = conv.attrs;
  for (const char* name : {"has_bias", "pre_activation"}) attrs.erase(name);
  return attrs;
}

Verdict quantizable(const Node& conv, const Context& context) {
  if (context.model.opset() < 13) return no("scales per channel need opset 13");
  if (conv.output()->is_graph_output()) return no("it writes an output of the model", conv.output()->name());
  for (const Value* value : {conv.input(0), conv.output()})
    if (leads_inside(*value, context.model.opset())) return no("a branch or a loop reads it", value->name());
  if (!context.plan->allows(conv.name, Precision::i8)) return no("is to stay in higher precision", conv.name);
  const Value &weights = *weights_in(conv), *biased = input_as(conv, "bias");
  const Tensor* w = weights.constant();
  if (!w || w->dtype() != DType::f32) return no("the weights are no float32 constant", weights.name());
  const Tensor* bias = biased ? biased->constant() : w;
  if (!bias || !finite(*bias) || !finite(*w)) return no("weights or bias hold what is no number", conv.name);
  // Stand-ins: of these only the dims count.
  const std::int64_t filters = w->dims()[0];
  const Tensor bytes(DType::i8, w->dims(), {w->data(), [](const std::byte*) {}});
  const std::vector<float> ones(static_cast<std::size_t>(filters), 1);
  const std::vector<std::int32_t> zeros(ones.size(), 0);
  const Tensor scales = Tensor::of<float>({filters}, ones), biases = Tensor::of<std::int32_t>({filters}, zeros);
  Call call = call_of(conv);
  call.op = in_form(*fused_op(conv), Form::i8)->kind;
  call.attrs = quantized_attrs(conv);
  Operand x = call.inputs.front(), residual = call.inputs.back();
  x.dtype = residual.dtype = DType::u8;
  const Shape of_filters = Shape::of(scales.dims());
  call.inputs = {x,
                 {weights.name(), DType::i8, Shape::of(w->dims()), &bytes},
                 {"w_scale", DType::f32, of_filters, &scales},
                 {"bias", DType::i32, of_filters, &biases}};
  if (input_as(conv, "residual")) call.inputs.push_back(residual);
  const Choice choice = choose_kernel(call, context.target);
  return choice.kernel ? yes() : no(choice.reason);
}

bool carries(const Node& node, std::int64_t opset) {
  if (!node.domain().empty() || node.outputs().size() != 1) return false;
  if (node.is("MaxPool")) return opset >= 12;
  if (node.is("Resize"))  // outside of a crop it puts a number that is no step
    return opset >= 11 && node.attrs.text("mode", "nearest") == "nearest" &&
           node.attrs.text("coordinate_transformation_mode") != "tf_crop_and_resize";
  for (const char* op : {"Concat", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "DepthToSpace",
                         "SpaceToDepth", "Identity"})
    if (node.is(op)) return true;
  return false;
}

std::optional<bool> sum_of(const Node& node, Extents& extents) {
  const std::string program = fused_op(node) && elementwise(node) ? node.attrs.text("program") : "";
  const bool relu = program == "Add x0 x1; Relu t0";
  if (!node.is("Add") && !relu && program != "Add x0 x1") return {};
  const Value *a = node.input(0), *b = node.input(1);
  if (a == b || a->is_initializer() || b->is_initializer()) return {};
  const Shape left = extents.of(*a), right = extents.of(*b);
  if (!left.has_rank() || !right.has_rank() || left.rank() != right.rank()) return {};
  for (std::size_t i = 0; i < left.rank(); ++i)
    if (left[i].known() && right[i].known() && !(left[i] == right[i])) return {};  // a broadcast: mostly a small one
  return relu;
}

std::vector<Value*> carried(const Node& node) {
  if (node.is("Concat") || elementwise(node)) return node.inputs();
  return {node.input(0)};
}

QuantizedValues::QuantizedValues(const Graph& graph, Context& context) : context_(context) {
  choose(graph);
  drop_unknown(graph);
  for (const auto& node : graph.nodes())
    for (Value* output : node->outputs())
      if (chosen_.contains(output)) values_.push_back(output);
  for (Value* input : graph.inputs())
    if (chosen_.contains(input)) values_.insert(values_.begin(), input);
  unify(graph);
}

void QuantizedValues::choose(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    choose_transposed(*node);
    if (!computes(*node, Family::convolution, Form::f32)) continue;
    if (const Verdict verdict = quantizable(*node, context_); !verdict) {
      context_.miss("place-quantizers", node.get(), verdict.reason);
      continue;
    }
    convolutions_.insert(node.get());
    chosen_.insert(node->input(0));
    if (const Value* residual = input_as(*node, "residual")) chosen_.insert(residual);
    chosen_.insert(node->output());
  }
  // Readers first, so that one walk reaches whatever lies in front of a chain of carriers.
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) follow(**node);
}

/// It reads 8 bits and writes what its readers want: there is a form with float32 results.
void QuantizedValues::choose_transposed(Node& node) {
  const std::optional<TransposedConv> found = transposed_conv(node);
  if (!found) return;
  const Verdict verdict = quantizable(*found, context_);
  if (!verdict) return context_.miss("place-quantizers", &node, verdict.reason);
  convolutions_.insert(&node);
  chosen_.insert(node.input(0));
}

/// What is read in 8 bits is best moved in 8 bits.
void QuantizedValues::follow(const Node& node) {
  if (!chosen_.contains(node.output())) return;
  if (!carries(node, context_.model.opset()) && !sum_of(node, extents_)) return;
  const std::vector<Value*> inputs = carried(node);
  if (!std::all_of(inputs.begin(), inputs.end(), is_float_tensor)) return;
  chosen_.insert(inputs.begin(), inputs.end());
  movers_.insert(&node);
}

/// Without a range there is no scale: the value and what would need it stay in float. So does what leads into a
/// subgraph (see leads_inside).
void QuantizedValues::drop_unknown(const Graph& graph) {
  std::erase_if(chosen_, [&](const Value* value) {
    return &value->graph() != &graph || !is_float_tensor(value) || !context_.plan->ranges.contains(value->name()) ||
           leads_inside(*value, context_.model.opset());
  });
}

const Value* QuantizedValues::root(const Value* value) const {
  auto found = parent_.find(value);
  while (found != parent_.end() && found->second != value) {
    value = found->second;
    found = parent_.find(value);
  }
  return value;
}

void QuantizedValues::unify(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (!carries(*node, context_.model.opset()) || !chosen_.contains(node->output())) continue;
    for (const Value* input : carried(*node))
      if (chosen_.contains(input)) parent_[root(input)] = root(node->output());
  }
  for (const Value* value : values_) {
    const Range seen = context_.plan->ranges.find(value->name())->second;
    const auto [place, fresh] = ranges_.emplace(root(value), seen);
    if (!fresh) place->second = united(place->second, seen);
  }
}

bool QuantizedValues::reads_bytes(const Node& node) const {
  return convolutions_.contains(&node) || movers_.contains(&node);
}

Range QuantizedValues::range(const Value& value) const { return ranges_.at(root(&value)); }

}  // namespace modelflow::passes
