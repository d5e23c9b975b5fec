// Models that arrive quantized (QDQ from PyTorch, ONNX Runtime, NNCF; QOperator) in the form that fuse_quantized()
// knows: uint8 activations, weights as float32 constants whose 8-bit origin is remembered, so that not a bit of it
// changes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/graph/imported_weights.h"
#include "passes/quantize/channels.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

/// Zero points of int8 for weights of uint8 become those of the same weights as int8.
std::vector<std::int64_t> zeros_of(const Tensor* zeros, DType weights) {
  std::vector<std::int64_t> values = zeros ? zeros->to_ints() : std::vector<std::int64_t>{0};
  if (weights == DType::u8)
    for (std::int64_t& value : values) value -= 128;
  return values;
}

bool all_zero(const std::vector<std::int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](std::int64_t value) { return value == 0; });
}

Tensor as_int8(const Tensor& values) {
  return Tensor::make(DType::i8, values.dims(), [&](std::byte* to) {
    std::ranges::transform(values.as<std::uint8_t>(), to, [](std::uint8_t v) { return std::byte(v ^ 0x80); });
  });
}

/// int8 weights less their zero points, where that fits: what has none is cheaper to multiply, and small numbers do not
/// saturate in ONNX Runtime's products without VNNI.
std::optional<Tensor> centred(const Tensor& values, const std::vector<std::int64_t>& zeros, std::size_t axis) {
  const Channels channel(values.dims(), axis);
  std::vector<std::int8_t> moved;
  for (const std::int8_t value : values.as<std::int8_t>()) {
    const std::int64_t steps = value - zeros[zeros.size() == 1 ? 0 : channel(moved.size())];
    if (steps < INT8_MIN || steps > INT8_MAX) return {};
    moved.push_back(static_cast<std::int8_t>(steps));
  }
  return Tensor::of<std::int8_t>(values.dims(), moved);
}

/// One scale for all, or one for each channel.
bool fit(const Tensor& scales, const Tensor& values, std::size_t axis) {
  if (scales.elements() == 1) return true;
  return scales.rank() == 1 && axis < values.rank() && scales.elements() == values.dims()[axis];
}

/// Without these DequantizeLinear is well defined, but no kernel in 8 bits divides by them.
bool normal(const Tensor& scales) {
  const auto all = scales.as<float>();
  return std::all_of(all.begin(), all.end(), [](float scale) { return std::isnormal(scale) && scale > 0; });
}

/// (values - zero point) * scale along the axis, exactly as DequantizeLinear computes it; scales and zero points fit.
template <class T>
Tensor dense(const Tensor& values, const Tensor& scales, const std::vector<std::int64_t>& zeros, std::size_t axis) {
  const Channels channel_of(values.dims(), axis);
  const auto from = values.as<T>();
  const auto factor = scales.as<float>();
  return Tensor::make(DType::f32, values.dims(), [&](std::byte* bytes) {
    auto* to = reinterpret_cast<float*>(bytes);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t channel = channel_of(i);
      const std::int64_t steps = std::int64_t{from[i]} - zeros[zeros.size() == 1 ? 0 : channel];
      to[i] = static_cast<float>(steps) * factor[factor.size() == 1 ? 0 : channel];
    }
  });
}

/// The axis of the output channels in weights that a product or convolution reads.
std::optional<std::size_t> channels(const Use& use, std::size_t rank) {
  const Node& reader = *use.node;
  if (use.index != 1) return {};
  if (reader.is("Conv")) return 0;
  if (reader.is("ConvTranspose") && reader.attrs.integer("group", 1) == 1) return 1;
  if (reader.is("MatMul") && rank == 2) return 1;
  if (reader.is("Gemm")) return reader.attrs.integer("transB") ? 0 : 1;
  return {};
}

void put(Node& node, Value& made) {
  node.graph().replace(*node.output(), made);
  node.graph().erase(node);
}

/// The axis that the weights have one scale per index of, or a reason to leave them.
Verdict check_weights(const Node& node, std::size_t& axis) {
  const Tensor &values = *node.input(0)->constant(), &scales = *node.input(1)->constant();
  const Value& output = *node.output();
  if (output.is_graph_output()) return no("is an output of the graph", output.name());
  std::optional<std::size_t> filters;  // of all readers: heads share their weights between the levels of a pyramid
  for (const Use& use : output.uses()) {
    const std::optional<std::size_t> of_this = channels(use, values.rank());
    if (!of_this || *of_this >= std::max<std::size_t>(values.rank(), 1))
      return no("no weights of a convolution or product", output.name());
    if (filters && filters != of_this)
      return no("its readers have their output channels along unlike axes", output.name());
    filters = of_this;
  }
  if (!filters) return no("nothing reads it", output.name());
  axis = *filters;
  std::int64_t given = node.attrs.integer("axis", 1);
  if (given < 0) given += static_cast<std::int64_t>(values.rank());
  if (scales.elements() != 1 && given != static_cast<std::int64_t>(axis))
    return no("scales along another axis than the output channels", node.input(1)->name());
  return fit(scales, values, axis) ? yes() : no("the scales do not fit the weights", node.input(1)->name());
}

bool convolves(const Use& use) { return use.node->is("Conv") || use.node->is("ConvTranspose"); }

/// Between quantized weights and a bias that is not, ONNX Runtime rounds the bias to steps of its own.
bool weights_stay(const Use& use) {
  const Node* weights = use.index == 2 && use.node->input(1) ? use.node->input(1)->producer() : nullptr;
  return weights && weights->is("DequantizeLinear");
}

/// Weights as the kernels take them: of int8, with zero points where these are needed.
struct ImportedSteps {
  std::optional<Tensor> made = {};  ///< none: as they came
  std::vector<std::int64_t> zeros;
};

ImportedSteps imported_steps(const Tensor& values, std::vector<std::int64_t> zeros, std::size_t axis) {
  std::optional<Tensor> made;
  if (values.dtype() == DType::u8) made = as_int8(values);
  if (all_zero(zeros)) return {std::move(made), std::move(zeros)};
  if (std::optional<Tensor> moved = centred(made ? *made : values, zeros, axis)) return {std::move(moved), {0}};
  return {std::move(made), std::move(zeros)};
}

Verdict import_bias(Node& node, const Tensor& values, const Tensor& scales, const std::vector<std::int64_t>& zeros) {
  if (!all_zero(zeros)) return no("a bias with a zero point", node.input(0)->name());
  if (!fit(scales, values, 0)) return no("the scales do not fit the bias", node.input(1)->name());
  if (std::ranges::any_of(node.output()->uses(), weights_stay))
    return no("the weights beside the bias stay quantized", node.input(0)->name());
  put(node, node.graph().add_constant(dense<std::int32_t>(values, scales, zeros, 0), node.output()->name()));
  return yes();
}

/// DequantizeLinear of 8-bit weights, one scale or one per output channel; of a bias in 32 bits.
Verdict import_one(Node& node, const Context& context) {
  const Tensor* values = node.input(0)->constant();
  const Tensor* scales = node.input(1) ? node.input(1)->constant() : nullptr;
  const Tensor* given = node.input(2) ? node.input(2)->constant() : nullptr;
  if (!values || !scales || (node.input(2) && !given)) return no("no constants", node.label());
  if (scales->dtype() != DType::f32 || node.output()->dtype() != DType::f32)
    return no("the scales or the result are not float32", node.input(1)->name());
  const std::vector<std::int64_t> zeros = zeros_of(given, values->dtype());
  if (zeros.size() != 1 && static_cast<std::int64_t>(zeros.size()) != scales->elements())
    return no("the zero points do not fit the scales", node.input(2)->name());
  if (values->dtype() == DType::i32 && values->rank() == 1) return import_bias(node, *values, *scales, zeros);
  if (values->dtype() != DType::u8 && values->dtype() != DType::i8) return no("not in 8 bits", node.input(0)->name());
  std::size_t axis = 0;
  if (Verdict verdict = check_weights(node, axis); !verdict) return verdict;
  if (static_cast<std::int64_t>(zeros.size()) != 1 && !fit(*given, *values, axis))
    return no("the zero points do not fit the weights", node.input(2)->name());
  Graph& graph = node.graph();
  const ImportedSteps made_steps = imported_steps(*values, zeros, axis);
  if (!all_zero(made_steps.zeros) && std::ranges::any_of(node.output()->uses(), convolves))
    return no("asymmetric weights", node.input(0)->name());
  Value& steps = made_steps.made ? graph.add_constant(*made_steps.made, node.input(0)->name()) : *node.input(0);
  Value* zero = nullptr;
  if (!all_zero(made_steps.zeros)) {
    const std::vector<float> numbers(made_steps.zeros.begin(), made_steps.zeros.end());
    zero = &graph.add_constant(Tensor::of<float>({static_cast<std::int64_t>(numbers.size())}, numbers),
                               node.input(0)->name() + "_zero");
  }
  Value& made =
      graph.add_constant(dense<std::int8_t>(*steps.constant(), *scales, made_steps.zeros, axis), node.output()->name());
  // Nobody else lets go of them.
  const bool forgotten = !context.options.disabled.contains("keep-float");
  if (forgotten && normal(*scales)) keep_weights(graph, made, axis, steps, *node.input(1), zero);
  put(node, made);
  return yes();
}

/// int8 activations with the zero point moved by 128 are uint8 ones of the same meaning.
bool widen_sign(Node& quantize) {
  Value* zero = quantize.input(2);
  const Tensor* point = zero ? zero->constant() : nullptr;
  if (!point || point->dtype() != DType::i8 || point->elements() != 1 || quantize.output()->is_graph_output())
    return false;
  const auto& uses = quantize.output()->uses();
  const auto reads = [&](const Use& use) {
    if (!use.node->is("DequantizeLinear") || use.index != 0) return false;
    const Value* other = use.node->input(2);
    return other ? other->constant() && other->constant()->same_content(*point) : all_zero(point->to_ints());
  };
  if (!std::all_of(uses.begin(), uses.end(), reads)) return false;
  Graph& graph = quantize.graph();
  const auto moved = static_cast<std::uint8_t>(point->as<std::int8_t>()[0] + 128);
  Value& made = graph.add_constant(Tensor::scalar(moved).reshaped(point->dims()), zero->name());
  graph.set_input(quantize, 2, &made);
  for (const Use& use : std::vector<Use>(uses)) {
    if (use.node->inputs().size() < 3) use.node->graph().resize_inputs(*use.node, 3);
    use.node->graph().set_input(*use.node, 2, &made);
  }
  quantize.attrs.erase("output_dtype");  // the type of the zero point says it
  quantize.output()->type.dtype = DType::u8;
  return true;
}

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 13) return 0;  // see raise-opset, which says why
  std::vector<Node*> weights, activations;
  for (const auto& node : graph.nodes()) {
    if (node->is("DequantizeLinear") && node->input(0)->is_initializer()) weights.push_back(node.get());
    if (node->is("QuantizeLinear")) activations.push_back(node.get());
  }
  // A bias goes with the weights beside it.
  std::stable_partition(weights.begin(), weights.end(),
                        [](const Node* node) { return node->input(0)->dtype() != DType::i32; });
  int changes = 0;
  for (Node* node : weights) {
    const Verdict verdict = import_one(*node, context);
    changes += verdict.ok;
    if (!verdict) context.miss("import-quantized", node, verdict.reason);
  }
  for (Node* node : activations) changes += widen_sign(*node);
  if (changes) context.hit("import-quantized", changes);
  return changes;
}

}  // namespace

Pass import_quantized() {
  return {.name = "import-quantized",
          .doc = "Quantized models: 8-bit weights become float32 constants that remember them; int8 activations uint8",
          .run = run};
}

}  // namespace modelflow::passes
