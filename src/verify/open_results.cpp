// Walks over ops whose results are nobody's promise.
#include "src/verify/open_results.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>

namespace modelflow {
namespace {

bool is_any_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return node.is(op); });
}

/// Computed from constants alone, as far as a few steps tell.
bool is_fixed(const Value* value, int depth = 0) {
  if (!value || value->constant()) return true;
  const Node* node = value->producer();
  return node && depth < 4 && !node->inputs().empty() &&
         std::ranges::all_of(node->inputs(), [&](const Value* input) { return is_fixed(input, depth + 1); });
}

/// The input that a convolution, a normalization, a factor or an op that moves elements passes on; none of other ops.
const Value* passed_on(const Node& node) {
  if (is_any_of(node, {"Conv", "BatchNormalization", "Identity", "Dropout", "Transpose", "Reshape", "Squeeze",
                       "Unsqueeze", "Flatten", "Neg"}))
    return node.input(0);
  if (!is_any_of(node, {"Mul", "Div", "Add", "Sub"})) return nullptr;
  for (const std::size_t i : {0, 1})
    if (is_fixed(node.input(1 - i))) return node.input(i);
  return nullptr;
}

/// What a value is computed from by such ops; itself where there is none.
const Value* behind_convolutions(const Value* value) {
  while (value && value->producer()) {
    const Value* next = passed_on(*value->producer());
    if (!next) break;
    value = next;
  }
  return value;
}

}  // namespace

bool any_node(const Graph& graph, const std::function<bool(const Node&)>& is) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
    const std::vector<Graph*> inner = node->subgraphs();
    return is(*node) ||
           std::any_of(inner.begin(), inner.end(), [&](const Graph* nested) { return any_node(*nested, is); });
  });
}

bool has_half(const Graph& graph) {
  const auto is_half = [](const Value* value) { return value->dtype() == DType::f16; };
  const std::vector<Value*> constants = graph.initializers();
  const auto casts = [](const Node& node) { return node.is("Cast") && node.attrs.integer("to") == 10; };
  return std::any_of(graph.inputs().begin(), graph.inputs().end(), is_half) ||
         std::any_of(constants.begin(), constants.end(), is_half) || any_node(graph, casts);
}

bool leaves_masked_rows_open(const Graph& graph) {
  return has_half(graph) || any_node(graph, [](const Node& node) { return node.is("Attention"); });
}

bool is_recurrent(const Node& node) { return is_any_of(node, {"LSTM", "GRU", "RNN"}); }

bool is_foreign(const Node& node) {
  return !node.domain().empty() && node.domain() != kDomain && !node.domain().starts_with("ai.onnx") &&
         !node.domain().starts_with("com.microsoft");
}

bool picks_extremes(const Node& node) {
  return is_any_of(node, {"ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool"});
}

bool scales_by_data(const Node& node) { return node.is("InstanceNormalization") && !is_fixed(node.input(1)); }

bool leaves_nan_open(const Node& node) {
  if (node.is("Cast")) return !is_float(static_cast<DType>(node.attrs.integer("to")));
  // ONNX Runtime interpolates images of one axis along all three: 0 * NaN comes from neighbours in the batch.
  if (node.is("Resize") && node.attrs.text("mode") == "linear")
    return !node.input(0)->shape().has_rank() || node.input(0)->shape().rank() != 4;
  return is_any_of(
      node, {"QuantizeLinear", "DynamicQuantizeLinear", "TopK", "ArgMax", "ArgMin", "NonMaxSuppression", "STFT", "DFT",
             "GridSample", "RoiAlign", "Unique", "If", "Loop", "Scan", "LSTM", "GRU", "RNN", "Attention"});
}

bool adds_parallel_convolutions(const Node& node) {
  if (!is_any_of(node, {"Add", "Sub", "Sum"}) || passed_on(node)) return false;
  std::map<const Value*, const Value*> first;  // operand behind which each source was seen
  for (const Value* operand : node.inputs()) {
    const Value* source = behind_convolutions(operand);
    const auto [seen, fresh] = first.emplace(source, operand);
    if (!fresh && (operand != source || seen->second != source)) return true;
  }
  return false;
}

}  // namespace modelflow
