// Reads attributes, types and constants of a node from ONNX Runtime.
#include "backends/ort/describe.h"

#include <algorithm>

#include "backends/ort/attributes.h"

namespace modelflow::ort {
namespace {

Shape shape_of(const OrtApi& api, const OrtTensorTypeAndShapeInfo* tensor) {
  std::size_t rank = 0;
  check(api, api.GetDimensionsCount(tensor, &rank));
  if (rank == 0) return {};  // a scalar and an unknown rank look alike
  std::vector<std::int64_t> numbers(rank);
  std::vector<const char*> symbols(rank);
  check(api, api.GetDimensions(tensor, numbers.data(), rank));
  check(api, api.GetSymbolicDimensions(tensor, symbols.data(), rank));
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < rank; ++i) {
    dims.push_back(numbers[i] >= 0 ? Dim(numbers[i]) : symbols[i] && *symbols[i] ? Dim::symbol(symbols[i]) : Dim());
  }
  return dims;
}

Operand describe_type(const OrtApi& api, OrtTypeInfo* type) {
  const std::unique_ptr<OrtTypeInfo, void (*)(OrtTypeInfo*)> owner(type, api.ReleaseTypeInfo);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  check(api, api.CastTypeInfoToTensorInfo(type, &tensor));
  Operand operand;
  if (!tensor) return operand;
  ONNXTensorElementDataType dtype = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  check(api, api.GetTensorElementType(tensor, &dtype));
  operand.dtype = static_cast<DType>(dtype);  // the numbers are those of ONNX in both
  operand.shape = shape_of(api, tensor);
  return operand;
}

Tensor constant(const OrtApi& api, const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* made = nullptr;
  check(api, api.GetTensorTypeAndShape(value, &made));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> type(
      made, api.ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType dtype = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  check(api, api.GetTensorElementType(type.get(), &dtype));
  check(api, api.GetDimensionsCount(type.get(), &rank));
  Dims dims(rank);
  check(api, api.GetDimensions(type.get(), dims.data(), rank));
  void* data = nullptr;
  check(api, api.GetTensorMutableData(const_cast<OrtValue*>(value), &data));
  // The session keeps initializers until it ends (the plugin never asks it to drop them).
  return {static_cast<DType>(dtype), dims, {static_cast<const std::byte*>(data), [](const std::byte*) {}}};
}

}  // namespace

std::string label(const OrtApi& api, const OrtKernelInfo* info, const std::string& pool_name) {
  const std::string name =
      text(api, [&](char* out, std::size_t* n) { return api.KernelInfo_GetNodeName(info, out, n); });
  return "node '" + name + "' (modelflow." + pool_name + ")";
}

Call describe(const OrtApi& api, const OrtKernelInfo* info, const std::string& pool_name,
              std::vector<Tensor>& constants) {
  const Attr precision = attribute(api, info, kPrecision, std::string());
  const std::string_view kind = kind_of(pool_name, {{kPrecision, precision}});
  if (kind.empty())
    throw Error(ErrorKind::unsupported,
                "this build knows no precision '" + std::get<std::string>(precision) + "' of it");
  const FusedOp& op = *find_fused_op(kind);
  Call call;
  call.op = op.kind;
  for (const auto& [name, value] : op.defaults) call.attrs.set(name, attribute(api, info, name, value));
  std::size_t count = 0;
  check(api, api.KernelInfo_GetInputCount(info, &count));
  constants.reserve(count);  // the call keeps pointers into it
  for (std::size_t i = 0; i < count; ++i) {
    OrtTypeInfo* type = nullptr;
    if (!succeeded(api, api.KernelInfo_GetInputTypeInfo(info, i, &type))) break;  // absent, and all behind it
    Operand operand = describe_type(api, type);
    operand.name = text(api, [&](char* out, std::size_t* n) { return api.KernelInfo_GetInputName(info, i, out, n); });
    int is_constant = 0;
    const OrtValue* value = nullptr;
    check(api, api.KernelInfoGetConstantInput_tensor(info, i, &is_constant, &value));
    if (is_constant && value) {
      operand.constant = &constants.emplace_back(constant(api, value));
      operand.shape = Shape::of(operand.constant->dims());
    }
    call.inputs.push_back(std::move(operand));
  }
  check(api, api.KernelInfo_GetOutputCount(info, &count));
  call.outputs.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    call.outputs[i].name =
        text(api, [&](char* out, std::size_t* n) { return api.KernelInfo_GetOutputName(info, i, out, n); });
  return call;
}

void infer_outputs(Call& call) {
  const std::vector<Operand> asked = call.outputs;
  const Verdict verdict = find_fused_op(call.op)->infer(call);
  if (!verdict) throw Error(ErrorKind::invalid_input, verdict.reason);
  for (std::size_t i = 0; i < std::max(asked.size(), call.outputs.size()); ++i) {
    const bool wanted = i < asked.size() && !asked[i].name.empty(), given = i < call.outputs.size();
    if (wanted != given)
      throw Error(ErrorKind::invalid_input, "output " + std::to_string(i) + " is " + (wanted ? "" : "not ") +
                                                "asked for, and the attributes say that " +
                                                (given ? "there is one" : "there is none"));
  }
}

}  // namespace modelflow::ort
