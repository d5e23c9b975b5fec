// The contents of small tensors that carry shapes, computed backwards from the nodes that make them.
#include "modelflow/shape_values.h"

#include <cmath>

#include "src/onnx/shape_ops.h"

namespace modelflow {
namespace {

constexpr std::int64_t kMaxElements = 256;
constexpr int kMaxDepth = 200;  // single nodes are evaluated backwards

bool carries_numbers(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::f32 || dtype == DType::f64 ||
         dtype == DType::boolean;
}

// Floats take part as long as they are whole: Shape -> Cast -> Mul(2.0) -> Cast is how scale factors are exported.
std::optional<DimList> list_of(const Tensor& tensor) {
  if (tensor.rank() > 1 || !carries_numbers(tensor.dtype()) || tensor.elements() > kMaxElements) return {};
  DimList list;
  if (is_float(tensor.dtype())) {
    for (double number : tensor.to_doubles()) {
      bool whole = std::abs(number) < 1e15 && number == std::floor(number);
      list.push_back(whole ? Dim(static_cast<std::int64_t>(number)) : Dim());
    }
  } else {
    for (std::int64_t number : tensor.to_ints()) list.push_back(Dim(number));
  }
  return list;
}

// Constant since opset 12 may hold bare numbers instead of a tensor.
std::optional<Tensor> plain_numbers(const Attrs& attrs) {
  if (attrs.has("value_int")) return Tensor::scalar(attrs.integer("value_int"));
  if (attrs.has("value_float")) return Tensor::scalar(attrs.number("value_float"));
  if (attrs.has("value_ints")) {
    Ints values = attrs.ints("value_ints");
    return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values));
  }
  if (attrs.has("value_floats")) {
    Floats values = attrs.floats("value_floats");
    return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
  }
  return {};
}

// A number that the type does not hold has become another one, which depends on who computes it: it is not followed.
// Symbols stand for extents of tensors that exist, which every type in question holds.
Dim held(const Dim& dim, DType dtype) {
  const auto number = dim.number();
  if (!number) return dim;
  const auto within = [&](std::int64_t most) { return *number >= -most && *number <= most; };
  switch (dtype) {
    case DType::boolean:
      return *number == 0 || *number == 1 ? dim : Dim();
    case DType::i32:
      return *number == static_cast<std::int32_t>(*number) ? dim : Dim();
    case DType::f32:
      return within(1LL << 24) ? dim : Dim();
    case DType::f64:
      return within(1LL << 53) ? dim : Dim();
    default:
      return dim;
  }
}

// Nothing is known but the length.
std::optional<DimList> blank(const Value& value) {
  if (!value.type.is_tensor() || !value.shape().has_rank()) return {};
  if (value.dtype() != DType::i64 && value.dtype() != DType::i32) return {};
  if (value.shape().rank() == 0) return DimList(1);
  auto length = value.shape().rank() == 1 ? value.shape()[0].number() : std::nullopt;
  if (!length || *length > kMaxElements || *length < 0) return {};
  return DimList(static_cast<std::size_t>(*length));
}

}  // namespace

const Tensor* ShapeValues::constant(const Value* value) {
  if (!value) return nullptr;
  if (const Tensor* tensor = ir_version_ < 4 ? value->initializer() : value->constant()) return tensor;
  const Node* producer = value->producer();
  if (!producer || !producer->is("Constant")) return nullptr;
  if (const Tensor* tensor = producer->attrs.tensor("value")) return tensor;
  auto found = made_.find(producer);
  if (found == made_.end()) {
    auto tensor = plain_numbers(producer->attrs);
    if (!tensor) return nullptr;
    found = made_.emplace(producer, std::move(*tensor)).first;
  }
  return &found->second;
}

const DimList* ShapeValues::of(const Value* value) {
  if (!value) return nullptr;
  auto found = known_.find(value);
  if (found == known_.end()) {
    if (depth_ > kMaxDepth) return nullptr;
    ++depth_;
    auto list = compute(*value);
    --depth_;
    found = known_.insert_or_assign(value, std::move(list)).first;
  }
  return found->second ? &*found->second : nullptr;
}

std::optional<std::vector<std::int64_t>> ShapeValues::numbers(const Value* value) {
  const DimList* list = of(value);
  if (!list) return {};
  std::vector<std::int64_t> result;
  for (const Dim& dim : *list) {
    if (!dim.known()) return {};
    result.push_back(dim.value());
  }
  return result;
}

std::optional<DimList> ShapeValues::compute(const Value& value) {
  if (const Tensor* tensor = constant(&value)) return list_of(*tensor);
  const Node* producer = value.producer();
  if (producer && producer->domain().empty()) {
    if (auto list = evaluate(*producer, value.output_index())) return list;
  }
  return blank(value);
}

std::optional<DimList> ShapeValues::evaluate(const Node& node, std::size_t output) {
  const ShapeOp* op = find_shape_op(node.op());
  const Value* value = node.output(output);
  if (!op || !value || (value->shape().has_rank() && value->shape().rank() > 1)) return {};
  auto result = op->evaluate({*this, node, output});
  if (!result || static_cast<std::int64_t>(result->size()) > kMaxElements) return {};
  for (Dim& dim : *result) dim = held(dim, value->dtype());
  return result;
}

}  // namespace modelflow
