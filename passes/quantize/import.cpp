// Models that arrive quantized (QDQ from PyTorch, ONNX Runtime, NNCF; QOperator) in the form that fuse_quantized()
// knows: uint8 activations, weights as float32 constants whose 8-bit origin is remembered, so that not a bit of it
// changes.
#include "passes/quantize/import.h"

#include <algorithm>
#include <cmath>

#include "passes/facts.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {
namespace {

constexpr const char* kOrigin = "modelflow.quantized";

Tensor repeated(float value, std::int64_t times) {
  return Tensor::of<float>({times}, std::vector<float>(static_cast<std::size_t>(times), value));
}

bool all_zero(const Tensor& tensor) {
  const std::vector<std::int64_t> values = tensor.to_ints();
  return std::all_of(values.begin(), values.end(), [](std::int64_t value) { return value == 0; });
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

/// values * scale along the axis, exactly as DequantizeLinear computes it; the scales fit.
template <class T>
Tensor dense(const Tensor& values, const Tensor& scales, std::size_t axis) {
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < values.rank(); ++i) inner *= values.dims()[i];
  const std::int64_t count = scales.elements(), extent = values.rank() ? values.dims()[axis] : 1;
  const auto from = values.as<T>();
  const auto factor = scales.as<float>();
  return Tensor::make(DType::f32, values.dims(), [&](std::byte* bytes) {
    auto* to = reinterpret_cast<float*>(bytes);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto channel = static_cast<std::int64_t>(i) / inner % extent;
      to[i] = static_cast<float>(from[i]) * factor[static_cast<std::size_t>(count == 1 ? 0 : channel)];
    }
  });
}

/// The axis of the output channels in weights of the product or convolution that alone reads them.
std::optional<std::size_t> channels(const Node& reader, const Value& weights) {
  const std::size_t rank = weights.shape().rank();
  if (reader.input(1) != &weights) return {};
  if (reader.is("Conv")) return 0;
  if (reader.is("MatMul") && rank == 2) return 1;
  if (reader.is("Gemm")) return reader.attrs.integer("transB") ? 0 : 1;
  return {};
}

void put_dense(Node& node, Tensor tensor, bool keep) {
  Graph& graph = node.graph();
  Value& made = graph.add_constant(std::move(tensor), node.output()->name());
  if (keep) keep_weights(graph, made, *node.input(0), *node.input(1));
  graph.replace(*node.output(), made);
  graph.erase(node);
}

/// DequantizeLinear of 8-bit weights, symmetric, one scale or one per output channel; of a bias in 32 bits.
Verdict import_one(Node& node) {
  const Tensor* values = node.input(0)->constant();
  const Tensor* scales = node.input(1) ? node.input(1)->constant() : nullptr;
  const Tensor* zeros = node.input(2) ? node.input(2)->constant() : nullptr;
  if (!values || !scales || (node.input(2) && !zeros)) return no("no constants", node.label());
  if (scales->dtype() != DType::f32) return no("the scales are not float32", node.input(1)->name());
  if (zeros && !all_zero(*zeros)) return no("asymmetric weights", node.input(0)->name());
  if (values->dtype() == DType::i32 && values->rank() == 1) {
    if (!fit(*scales, *values, 0)) return no("the scales do not fit the bias", node.input(1)->name());
    put_dense(node, dense<std::int32_t>(*values, *scales, 0), false);
    return yes();
  }
  if (values->dtype() != DType::i8) return no("not int8", node.input(0)->name());
  Value& output = *node.output();
  const bool one = output.uses().size() == 1 && !output.is_graph_output();
  if (!one || !output.shape().has_rank()) return no("read by several nodes", output.name());
  const std::optional<std::size_t> axis = channels(*output.uses()[0].node, output);
  if (!axis) return no("no weights of a convolution or product", output.name());
  std::int64_t given = node.attrs.integer("axis", 1);
  if (given < 0) given += static_cast<std::int64_t>(values->rank());
  if (scales->elements() != 1 && given != static_cast<std::int64_t>(*axis))
    return no("scales along another axis than the output channels", node.input(1)->name());
  if (!fit(*scales, *values, *axis)) return no("the scales do not fit the weights", node.input(1)->name());
  put_dense(node, dense<std::int8_t>(*values, *scales, *axis), normal(*scales));
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
    return other ? other->constant() && other->constant()->same_content(*point) : all_zero(*point);
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
  quantize.output()->type.dtype = DType::u8;
  return true;
}

int run(Graph& graph, Context& context) {
  std::vector<Node*> weights, activations;
  for (const auto& node : graph.nodes()) {
    if (node->is("DequantizeLinear") && node->input(0)->is_initializer()) weights.push_back(node.get());
    if (node->is("QuantizeLinear")) activations.push_back(node.get());
  }
  int changes = 0;
  for (Node* node : weights) {
    const Verdict verdict = import_one(*node);
    changes += verdict.ok;
    if (!verdict) context.miss("import-quantized", node, verdict.reason);
  }
  for (Node* node : activations) changes += widen_sign(*node);
  if (changes) context.hit("import-quantized", changes);
  return changes;
}

}  // namespace

void keep_weights(Graph& graph, Value& dense, const Value& values, const Value& scales) {
  dense.metadata.emplace_back(kOrigin, values.name() + "\n" + scales.name());
  for (const Value* value : {&values, &scales}) graph.pinned.insert(value->name());
}

std::optional<QuantizedWeights> imported_weights(const Value& weights, std::size_t axis) {
  for (const auto& [key, names] : weights.metadata) {
    if (key != kOrigin) continue;
    const std::size_t end = names.find('\n');
    const Value* values = weights.graph().find(names.substr(0, end));
    const Value* scales = weights.graph().find(names.substr(end + 1));
    if (!values || !scales || !values->constant() || !scales->constant()) return {};
    const Tensor& given = *scales->constant();
    if (given.elements() != 1) return QuantizedWeights{*values->constant(), given};
    return QuantizedWeights{*values->constant(), repeated(given.as<float>()[0], weights.shape()[axis].value())};
  }
  return {};
}

void forget_weights(Graph& graph) {
  for (Value* value : graph.initializers()) {
    const auto origin = std::find_if(value->metadata.begin(), value->metadata.end(),
                                     [](const auto& entry) { return entry.first == kOrigin; });
    if (origin == value->metadata.end()) continue;
    const std::size_t end = origin->second.find('\n');
    graph.pinned.erase(origin->second.substr(0, end));
    graph.pinned.erase(origin->second.substr(end + 1));
    value->metadata.erase(origin);
  }
}

Pass import_quantized() {
  return {.name = "import-quantized",
          .doc = "Quantized models: 8-bit weights become float32 constants that remember them; int8 activations uint8",
          .run = run};
}

}  // namespace modelflow::passes
