// Reads types and broadcasting of operands for kernels of a GPU.
#include "backends/cuda/places.h"

#include <algorithm>
#include <string>

#include "backends/activation.h"
#include "modelflow/error.h"

namespace modelflow::cuda {

std::optional<Number> number_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return Number::f32;
    case DType::f16:
      return Number::f16;
    case DType::bf16:
      return Number::bf16;
    default:
      return std::nullopt;
  }
}

std::optional<Number> number_or_bytes_of(DType dtype) { return dtype == DType::u8 ? Number::u8 : number_of(dtype); }

std::size_t bytes_of(Number number) { return number == Number::f32 ? 4 : number == Number::u8 ? 1 : 2; }

Number shared_number(const char* op, const Invocation& call) {
  const DType first = call.input(0).dtype;
  const std::optional<Number> number = number_of(first);
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    if (!number || call.input(i).dtype != first)
      throw Error(ErrorKind::invalid_input, std::string(op) + ": inputs are not floats of one type");
  }
  return *number;
}

Verdict accepts_numbers(const Call& call) {
  for (const Operand& operand : call.inputs) {
    if (!number_of(operand.dtype)) return no("is not float32, float16 or bfloat16", operand.name);
    if (operand.dtype != call.in(0).dtype) return no("is of another type than x", operand.name);
  }
  return yes();
}

Verdict accepts_declared_types(const Call& call) {
  const FusedOp& op = *find_fused_op(call.op);
  const DType floats = takes_any_float(op) && number_of(float_type(call)) ? float_type(call) : DType::f32;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const DType declared = input_type(op, i, floats);
    if (call.in(i).dtype != declared) return no("is not " + std::string(name(declared)), call.in(i).name);
  }
  return yes();
}

Verdict accepts_axes(const Call& call) {
  for (const Operand& operand : call.inputs)
    if (operand.shape.has_rank() && operand.shape.rank() > Places::kAxes)
      return no("has more than " + std::to_string(Places::kAxes) + " axes", operand.name);
  return yes();
}

Verdict accepts_activation(const Call& call) {
  try {
    activation_of(call);
    return yes();
  } catch (const Error& error) {
    return no(error.what());
  }
}

double element_bytes(const Call& call) { return call.in(0).dtype == DType::f32 ? 4 : 2; }

double operand_bytes(const Call& call) {
  double bytes = 0;
  for (const std::vector<Operand>* operands : {&call.inputs, &call.outputs})
    for (const Operand& operand : *operands)
      bytes += static_cast<double>(byte_count(operand.dtype, {})) * operand.shape.known_elements();
  return bytes;
}

Places places_of(const char* op, const Broadcast& shape, std::size_t operands) {
  const std::vector<std::size_t>& extents = shape.extents();
  if (extents.size() > Places::kAxes || operands > Places::kOperands)
    throw Error(ErrorKind::unsupported, std::string(op) + ": operands broadcast along too many axes");
  Places places;
  places.axes = static_cast<std::int32_t>(extents.size());
  std::ranges::copy(extents, places.extents);
  for (std::size_t i = 0; i < operands; ++i) {
    std::ranges::copy(shape.strides(i), places.strides[i]);
    places.whole[i] = shape.whole(i);
    places.single[i] = shape.single(i);
  }
  return places;
}

}  // namespace modelflow::cuda
