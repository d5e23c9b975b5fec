// Costs of nodes, fused and standard, summed.
#include "src/measure/prediction.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "modelflow/pass.h"
#include "modelflow/symbols.h"
#include "src/input_shape.h"
#include "src/measure/describe.h"
#include "src/measure/roofline.h"
#include "src/measure/select.h"

namespace modelflow {
namespace {

using Symbols = std::map<std::string, std::int64_t>;

Symbols symbols_of(const Model& model, const std::map<std::string, Dims>& inputs) {
  Symbols symbols;
  for (const Value* input : model.graph().inputs()) {
    const auto given = inputs.find(input->name());
    if (given == inputs.end() || !input->shape().has_rank() || input->shape().rank() != given->second.size()) continue;
    for (std::size_t axis = 0; axis < given->second.size(); ++axis)
      if (const Dim& dim = input->shape()[axis]; is_symbol(dim)) symbols[dim.symbols()[0]] = given->second[axis];
  }
  return symbols;
}

Shape evaluated(const Shape& shape, const Symbols& symbols) {
  if (!shape.has_rank()) return shape;
  std::vector<Dim> dims = shape.dims();
  for (Dim& dim : dims)
    if (const std::optional<std::int64_t> number = dim.evaluate(symbols)) dim = *number;
  return dims;
}

/// A model whose types say as much as is known for these inputs.
class Sized {
 public:
  Sized(const Model& model, const std::vector<const Model*>& others, const std::map<std::string, Dims>& inputs)
      : model_(for_input_shapes(model, inputs)), symbols_(symbols_of(model, inputs)) {
    for (const Model* other : others) others_.push_back(for_input_shapes(*other, inputs));
    for (const auto& node : model_.graph().nodes())
      for (Value* output : node->outputs())
        if (output && output->type.is_tensor() && !output->shape().known()) settle(*output);
  }
  const Model& model() const { return model_; }

  void count_singles_as(DType half) {
    for (const auto& node : model_.graph().nodes()) {
      for (Value* value : node->inputs()) set(value, half);
      for (Value* value : node->outputs()) set(value, half);
    }
  }

 private:
  void settle(Value& value) const {
    value.type = Type::tensor(value.dtype(), evaluated(value.shape(), symbols_));
    for (const Model& other : others_) {
      const Value* same = other.graph().find(value.name());
      if (!value.shape().known() && same && same->type.is_tensor() && same->shape().known()) value.type = same->type;
    }
  }

  static void set(Value* value, DType half) {
    if (value && value->type.is_tensor() && value->dtype() == DType::f32) value->type.dtype = half;
  }

  Model model_;
  std::vector<Model> others_;
  Symbols symbols_;
};

double bytes_of(const Value* value) {
  if (!value || !value->type.is_tensor() || value->dtype() == DType::string) return 0;
  const int width = value->dtype() == DType::undefined ? bits(DType::f32) : bits(value->dtype());
  return width / 8.0 * value->shape().known_elements();
}

/// The result of arithmetic on extents, or of a node that moves nothing.
bool costs_nothing(const Node& node) {
  constexpr std::array kViews = {"Constant", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Shape", "Size"};
  if (std::ranges::any_of(kViews, [&](const char* op) { return node.is(op); })) return true;
  const Value* result = node.output();
  return result && result->type.is_tensor() && result->dtype() == DType::i64 && result->shape().has_rank() &&
         result->shape().rank() <= 1;
}

bool is_id(const Value* value) {
  return value && value->type.is_tensor() && (value->dtype() == DType::i64 || value->dtype() == DType::i32);
}

/// What a node reads of an operand: of a table no more than the rows that ids name.
double bytes_read(const Node& node, std::size_t i) {
  const double all = bytes_of(node.input(i));
  const bool table = node.is("Gather") ? i == 0 : node.domain() == kDomain && i > 0 && is_id(node.input(i - 1));
  return table ? std::min(all, bytes_of(node.output())) : all;
}

double bytes_moved(const Node& node) {
  double bytes = 0;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) bytes += bytes_read(node, i);
  for (const Value* output : node.outputs()) bytes += bytes_of(output);
  return bytes;
}

DType type_of(const Node& node) { return node.output() ? node.output()->dtype() : DType::f32; }

double seconds_of(const Node& node, const Target& target) {
  if (node.domain() == kDomain) {
    const Call call = call_by_kind(node);
    if (const Choice choice = choose_kernel(call, target); choice.kernel) return choice.kernel->cost(call, target);
  }
  if (costs_nothing(node)) return 0;
  // Stock kernels reach about half of the peak, as plain_seconds() has it.
  const double products = target.compute(type_of(node), work_of(node).operations, 0.5);
  const double steps = node.input(0) ? step_launches(node.op(), node.attrs, node.input(0)->shape()) : 0;
  return (1 + steps) * target.launch + std::max(products, target.stream(bytes_moved(node)));
}

bool extents_known(const Node& node) {
  return std::ranges::all_of(
      node.outputs(), [](const Value* value) { return !value || !value->type.is_tensor() || value->shape().known(); });
}

/// Products at the peak, or every weight, input and output once from DRAM.
double floor_of(const Graph& graph, const Target& target) {
  double products = 0, bytes = 0;
  std::unordered_set<const Value*> read;
  for (const auto& node : graph.nodes()) {
    products += target.compute(type_of(*node), work_of(*node).operations, 1);
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      const Value* value = node->input(i);
      const bool outside = value && (value->is_initializer() || value->is_graph_input());
      if (outside && read.insert(value).second) bytes += bytes_read(*node, i);
    }
  }
  for (const Value* output : graph.outputs()) bytes += bytes_of(output);
  return std::max(products, target.stream(bytes));
}

}  // namespace

Prediction predict(const Model& model, const std::vector<const Model*>& others, const Target& target, DType half,
                   const std::map<std::string, Dims>& inputs) {
  Sized sized(model, others, inputs);
  if (half != DType::undefined) sized.count_singles_as(half);
  Prediction prediction;
  for (const auto& node : sized.model().graph().nodes()) {
    ++prediction.nodes;
    prediction.unknown += !extents_known(*node);
    prediction.seconds += seconds_of(*node, target);
  }
  prediction.floor_seconds = floor_of(sized.model().graph(), target);
  return prediction;
}

}  // namespace modelflow
