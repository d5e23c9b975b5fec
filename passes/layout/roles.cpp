// How ops that do not mind the order of axes, or name them, run channels last.
#include "passes/layout/roles.h"

#include <algorithm>

#include "passes/graph/facts.h"
#include "passes/graph/transposed.h"

namespace modelflow::passes {
namespace {

constexpr double kNode = 2e-6;  // seconds that one more node costs in the runtime

/// A constant that broadcasts against [N,C,H,W] -> the one that does against [N,H,W,C]: [C,1,1] -> [C].
Tensor last_constant(const Tensor& tensor, std::size_t rank) {
  if (tensor.elements() == 1) return tensor;
  Dims dims(rank - tensor.rank(), 1);
  dims.insert(dims.end(), tensor.dims().begin(), tensor.dims().end());
  Tensor last = transposed(tensor.reshaped(dims), to_last(rank));
  Dims kept = last.dims();
  while (kept.size() > 1 && kept[0] == 1) kept.erase(kept.begin());
  return last.reshaped(kept);
}

bool one_element(const Value& value, Facts& facts) {
  const Shape shape = facts.extents.of(value);
  return shape.has_rank() && shape.rank() <= 1 && shape.elements() == Dim(1);
}

/// QuantizeLinear or DequantizeLinear with one scale for the whole tensor.
bool per_tensor(const Node& node, Facts& facts) {
  if (!node.is("QuantizeLinear") && !node.is("DequantizeLinear")) return false;
  return node.input(1) && node.input(2) && one_element(*node.input(1), facts) && one_element(*node.input(2), facts);
}

/// The attributes channels last; nothing where reduced axes leave or would come apart.
std::optional<Attrs> last_attrs(const Node& node, std::size_t rank) {
  Attrs attrs = node.attrs;
  if (!reduces(node)) return attrs;
  Ints axes(static_cast<std::size_t>(attrs.integer("axes", 1)));
  for (std::size_t i = 0; i < axes.size(); ++i)
    axes[i] = last_axis(attrs.integer("axis", -1) + static_cast<std::int64_t>(i), rank);
  std::sort(axes.begin(), axes.end());
  if (attrs.integer("keepdims", 1) == 0 || axes.back() - axes.front() >= std::ssize(axes)) return {};
  return attrs.set("axis", axes.front() - static_cast<std::int64_t>(rank));
}

}  // namespace

bool reduces(const Node& node) {
  const FusedOp* op = fused_op(node);
  return op && !op->axis.empty() && op->defaults.has("axes");
}

std::vector<Value*> with_list(Move& move, const char* name, const Ints& list) {
  Attrs attrs = move.node.attrs;
  std::vector<Value*> inputs = move.inputs;
  if (attrs.has(name))
    attrs.set(name, list);
  else
    inputs[1] = &move.constant(tensor_of(list));
  return {move.add(move.node.op(), std::move(inputs), std::move(attrs)).output()};
}

Node& Move::add(std::string_view op, std::vector<Value*> inputs, Attrs attrs, std::size_t outputs) {
  // ONNX Runtime refuses a model in which two nodes share a name.
  std::string name = node.name;
  if (named && !name.empty()) name = graph.unique_name(name + "_" + std::string(op));
  named = true;
  Node& added = graph.add(op, std::move(inputs),
                          {.before = &node, .outputs = outputs, .attrs = std::move(attrs), .name = std::move(name)});
  complete(added);
  infer_types(added, context.model);
  return added;
}

std::size_t Facts::rank(const Value* value) {
  if (!value) return 0;
  const Shape shape = extents.of(*value);
  return shape.has_rank() ? shape.rank() : 0;
}

double Facts::transpose_seconds(const Value& value) {
  const Shape shape = extents.of(value);
  bool moves = false;  // with extents 1 only, or a single channel, nothing changes its place
  for (std::size_t i = 2; shape.has_rank() && i < shape.rank(); ++i) moves |= !(shape[i] == Dim(1));
  if (shape.has_rank() && shape.rank() > 1) moves &= !(shape[1] == Dim(1));
  // Read once and written once; measured at two thirds of streaming speed.
  return kNode + (moves ? context.target.stream(3 * typical.bytes(value)) : 0);
}

std::optional<Ints> ints_of(const Node& node, const char* attribute, std::size_t index) {
  if (node.attrs.has(attribute)) return node.attrs.ints(attribute);
  if (!node.input(index) || !node.input(index)->constant()) return {};
  return node.input(index)->constant()->to_ints();
}

std::optional<Role> role_of(const Node& node, Facts& facts) {
  if (node.outputs().empty() || !node.output()) return {};
  for (auto* family : {elementwise_role, window_role, axis_role, reduce_role, resize_role, view_role}) {
    std::optional<Role> role = family(node, facts);
    if (!role) continue;
    // How to turn a value to channels last follows from its rank.
    std::vector<const Value*> turned;
    for (const std::size_t i : role->inputs) turned.push_back(node.input(i));
    if (role->output) turned.push_back(node.output());
    // Float8 and 4-bit numbers came to Transpose one by one with newer opsets.
    if (std::ranges::any_of(turned, [](const Value* value) { return value->dtype() > DType::bf16; })) return {};
    const auto flat = std::ranges::find_if(turned, [&](const Value* value) { return facts.rank(value) < 3; });
    if (flat == turned.end()) return role;
    facts.context.miss("channels-last", &node, "the rank of '" + (*flat)->name() + "' is unknown");
    return {};
  }
  return {};
}

std::optional<Role> elementwise_role(const Node& node, Facts& facts) {
  if (!elementwise(node) && !per_tensor(node, facts) && !reduces(node)) return {};
  const std::size_t rank = facts.rank(node.output());
  if (rank < 3 || node.outputs().size() != 1) return {};
  const std::optional<Attrs> attrs = last_attrs(node, rank);
  if (!attrs) return {};
  Role role;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    Value* input = node.input(i);
    if (!input || one_element(*input, facts)) continue;
    if (const Tensor* constant = input->constant()) {
      if (constant->rank() > rank || bits(constant->dtype()) % 8 != 0 || bits(constant->dtype()) == 0) return {};
      continue;
    }
    if (facts.rank(input) != rank) return {};
    role.inputs.push_back(i);
  }
  if (role.inputs.empty()) return {};
  const Node* producer = node.input(role.inputs[0])->producer();
  if (producer && producer->is("ConvTranspose") && only_reader(*producer->output()))
    role.plain_cost = facts.context.target.stream(8 * facts.typical.bytes(*node.output()));  // else it is absorbed
  role.make = [rank, attrs = *attrs](Move& move) {
    std::vector<Value*> inputs = move.inputs;
    for (Value*& input : inputs) {
      const Tensor* constant = input ? input->constant() : nullptr;
      if (constant && constant->elements() != 1) input = &move.constant(last_constant(*constant, rank));
    }
    const std::string domain = move.node.domain().empty() ? "" : "modelflow.";
    return std::vector<Value*>{move.add(domain + move.node.op(), std::move(inputs), attrs).output()};
  };
  return role;
}

}  // namespace modelflow::passes
