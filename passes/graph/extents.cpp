// Names for extents that nobody knows, and typical numbers from type inference over a copy of the model.
#include "passes/graph/extents.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "modelflow/pass.h"
#include "modelflow/random.h"
#include "modelflow/shape.h"
#include "src/core/unknown_extents.h"

namespace modelflow::passes {
namespace {

constexpr std::array<std::string_view, 37> kElementwise = {
    "Relu",     "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu",  "Mish", "Elu",
    "Selu",     "Celu",      "Abs",  "Neg",     "Exp",  "Log",         "Sqrt",      "Floor", "Ceil", "Round",
    "Softplus", "Softsign",  "Erf",  "Sign",    "Cast", "Identity",    "Dropout",   "PRelu", "Add",  "Sub",
    "Mul",      "Div",       "Pow",  "Max",     "Min",  "Reciprocal",  "Where"};

/// The shapes of `to` for the values of `from`, which it is a copy of: nodes and values stand in the same order.
void pair_shapes(const Graph& from, const Graph& to, std::unordered_map<const Value*, Shape>& shapes) {
  for (std::size_t i = 0; i < from.inputs().size(); ++i) shapes.emplace(from.inputs()[i], to.inputs()[i]->shape());
  auto copy = to.nodes().begin();
  for (const auto& node : from.nodes()) {
    const Node& other = **copy++;
    for (std::size_t i = 0; i < node->outputs().size(); ++i)
      if (node->output(i)) shapes.emplace(node->output(i), other.output(i)->shape());
    for (std::size_t i = 0; i < node->subgraphs().size(); ++i)
      pair_shapes(*node->subgraphs()[i], *other.subgraphs()[i], shapes);
  }
}

}  // namespace

bool elementwise(const Node& node) {
  if (const FusedOp* op = fused_op(node)) return op->elementwise;
  // A mask lies as the elements do, and so do numbers that are drawn for them.
  if (node.is("Dropout") && (draws(node) || (node.output(1) && !node.output(1)->uses().empty()) ||
                             (node.output(1) && node.output(1)->is_graph_output())))
    return false;
  return node.domain().empty() && std::find(kElementwise.begin(), kElementwise.end(), node.op()) != kElementwise.end();
}

Shape Extents::of(const Value& value) {
  const Shape& told = value.shape();
  if (!told.has_rank() || std::ranges::none_of(told.dims(), &Dim::unknown)) return told;
  if (const auto found = named_.find(&value); found != named_.end()) return found->second;
  std::vector<Dim> dims = told.dims();
  for (Dim& dim : dims)
    if (dim.unknown()) dim = Dim::symbol("unnamed(" + std::to_string(names_++) + ")");
  return named_.emplace(&value, std::move(dims)).first->second;
}

void TypicalSizes::infer() {
  inferred_ = true;
  Model sized = context_.model;
  for (Value* input : sized.graph().inputs()) {
    std::vector<Dim> dims = input->shape().has_rank() ? input->shape().dims() : std::vector<Dim>();
    const Dims* fed = nullptr;
    if (context_.typical)
      if (const auto found = context_.typical->find(input->name());
          found != context_.typical->end() && found->second.size() == dims.size())
        fed = &found->second;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (!dims[i].known()) dims[i] = fed ? (*fed)[i] : i == 0 ? typical::kBatch : typical::kImage;
    if (!dims.empty()) input->type.shape = std::move(dims);
  }
  infer_types(sized);
  pair_shapes(context_.model.graph(), sized.graph(), shapes_);
}

Shape TypicalSizes::of(const Value& value) {
  if (value.shape().known()) return value.shape();
  if (!inferred_) infer();
  const auto found = shapes_.find(&value);
  return found == shapes_.end() ? value.shape() : found->second;
}

Call TypicalSizes::call(const Node& node) {
  Call call = call_of(node);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (node.input(i)) call.inputs[i].shape = of(*node.input(i));
  for (std::size_t i = 0; i < call.outputs.size(); ++i)
    if (node.output(i)) call.outputs[i].shape = of(*node.output(i));
  return call;
}

void TypicalSizes::replace(const Value& value, const Value& replaced) {
  shapes_[&value] = of(replaced);
  shapes_.erase(&replaced);
}

double TypicalSizes::bytes(const Value& value) {
  const Shape shape = of(value);
  return shape.has_rank() ? (value.dtype() == DType::u8 ? 1 : 4) * shape.known_elements() : 0;
}

Node* only_reader(const Value& value) {
  if (value.uses().size() != 1 || value.is_graph_output()) return nullptr;
  Node* node = value.uses()[0].node;
  return &node->graph() == &value.graph() ? node : nullptr;
}

}  // namespace modelflow::passes
