// Finding a fused op by its kind, in another precision, and by the name that a file calls it.
#include <algorithm>
#include <array>
#include <charconv>

#include "modelflow/kernel.h"

namespace modelflow {

const FusedOp* find_fused_op(std::string_view kind) {
  for (const FusedOp* op : fused_ops()) {
    if (op->kind == kind) return op;
  }
  return nullptr;
}

const FusedOp* in_form(const FusedOp& op, Form form) {
  const std::string_view base = op.base.empty() ? op.kind : op.base;
  for (const FusedOp* other : fused_ops())
    if (other->form == form && (other->base.empty() ? other->kind : other->base) == base) return other;
  return nullptr;
}

std::string_view name(Form form) {
  constexpr std::array<std::string_view, 7> kNames = {"float32", "bfloat16", "bfloat16",   "int8",
                                                      "int8",    "int4",     "weight-only"};
  return kNames.at(static_cast<std::size_t>(form));
}

DType input_type(const FusedOp& op, std::size_t i, DType floats) {
  const DType declared = op.input_types.at(std::min(i, op.input_types.size() - 1));
  const bool any = declared == DType::f32 && std::ranges::count(op.single, i) == 0;
  return any ? floats : declared;
}

DType float_type(const Call& call) {
  const FusedOp* op = find_fused_op(call.op);
  DType found = DType::undefined;
  for (std::size_t i = 0; op && i < call.inputs.size(); ++i) {
    const DType type = call.inputs[i].dtype;
    const bool counts = input_type(*op, i, DType::f16) == DType::f16;  // not what is of another type or single
    if (!counts || !is_float(type)) continue;
    if (found != DType::undefined && type != found) return DType::undefined;
    found = type;
  }
  return found == DType::undefined ? DType::f32 : found;
}

const FusedOp& pool_of(const FusedOp& op) { return op.names > 0 ? op : *find_fused_op(op.base); }

namespace {

/// Of all that share the names of `owner`, the one that the attributes call for.
std::string_view in_pool(const FusedOp& owner, const Attrs& attrs) {
  const std::string precision = attrs.text(kPrecision);
  if (precision.empty()) return owner.kind;
  for (const FusedOp* op : fused_ops())
    if (op != &owner && &pool_of(*op) == &owner && name(op->form) == precision) return op->kind;
  return {};
}

}  // namespace

std::string_view kind_of(std::string_view pool_name, const Attrs& attrs) {
  if (const FusedOp* op = find_fused_op(pool_name)) return in_pool(*op, attrs);  // in memory
  const std::size_t bar = pool_name.rfind('_');
  if (bar == std::string_view::npos) return {};
  const FusedOp* op = find_fused_op(pool_name.substr(0, bar));
  const std::string_view digits = pool_name.substr(bar + 1);
  int index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  // "Conv_01" is no name that pool_name() makes.
  if (!op || !whole || (digits.front() == '0' && digits.size() > 1) || index < 0 || index >= op->names) return {};
  return in_pool(*op, attrs);
}

// Never the name of an operator of ONNX: ONNX Runtime (1.21 to 1.32 at least) quantizes the weights of whatever is
// called Conv and stands between DequantizeLinear and QuantizeLinear, in any domain, and then misses an operator there.
std::string pool_name(std::string_view kind, int index) { return std::string(kind) + "_" + std::to_string(index); }

}  // namespace modelflow
