// Tensors from and to OrtValues.
#include <algorithm>
#include <cstring>

#include "modelflow/error.h"
#include "src/runtime/api.h"

namespace modelflow {

// ONNXTensorElementDataType and TensorProto.DataType agree on every number, so dtypes are cast both ways.
static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 == static_cast<int>(DType::i4));
static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 == static_cast<int>(DType::bf16));

namespace {

OrtValueHeld strings_to_ort(const OrtCalls& ort, const Tensor& tensor) {
  OrtAllocator* allocator = nullptr;
  ort.check(ort->GetAllocatorWithDefaultOptions(&allocator));
  OrtValue* value = nullptr;
  ort.check(ort->CreateTensorAsOrtValue(allocator, tensor.dims().data(), tensor.rank(),
                                        ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  OrtValueHeld held = OrtCalls::hold(value, ort->ReleaseValue);
  std::vector<const char*> pointers;
  for (const std::string& text : tensor.strings()) pointers.push_back(text.c_str());
  ort.check(ort->FillStringTensor(value, pointers.data(), pointers.size()));
  return held;
}

Tensor strings_from_ort(const OrtCalls& ort, const OrtValue* value, Dims dims) {
  std::vector<std::string> strings(static_cast<std::size_t>(element_count(dims)));
  for (std::size_t i = 0; i < strings.size(); ++i) {
    std::size_t length = 0;
    ort.check(ort->GetStringTensorElementLength(value, i, &length));
    strings[i].resize(length);
    ort.check(ort->GetStringTensorElement(value, length, i, strings[i].data()));
  }
  return Tensor(std::move(dims), std::move(strings));
}

}  // namespace

OrtValueHeld to_ort(const OrtCalls& ort, const Tensor& tensor) {
  if (tensor.dtype() == DType::string) return strings_to_ort(ort, tensor);
  OrtMemoryInfo* memory = nullptr;
  ort.check(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  const auto held_memory = OrtCalls::hold(memory, ort->ReleaseMemoryInfo);
  // ORT only reads inputs; it refuses a null pointer even for zero elements.
  static char nothing;
  void* data = tensor.bytes() ? const_cast<std::byte*>(tensor.data()) : static_cast<void*>(&nothing);
  OrtValue* value = nullptr;
  ort.check(ort->CreateTensorWithDataAsOrtValue(memory, data, tensor.bytes(), tensor.dims().data(), tensor.rank(),
                                                static_cast<ONNXTensorElementDataType>(tensor.dtype()), &value));
  return OrtCalls::hold(value, ort->ReleaseValue);
}

namespace {

Tensor tensor_from_ort(const OrtCalls& ort, const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  ort.check(ort->GetTensorTypeAndShape(value, &info));
  const auto held = OrtCalls::hold(info, ort->ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType type;
  std::size_t rank = 0;
  ort.check(ort->GetTensorElementType(info, &type));
  ort.check(ort->GetDimensionsCount(info, &rank));
  Dims dims(rank);
  ort.check(ort->GetDimensions(info, dims.data(), rank));
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return strings_from_ort(ort, value, std::move(dims));
  const auto dtype = static_cast<DType>(type);
  void* data = nullptr;
  ort.check(ort->GetTensorMutableData(const_cast<OrtValue*>(value), &data));
  const std::size_t bytes = byte_count(dtype, dims);
  return Tensor::make(dtype, std::move(dims), [&](std::byte* out) {
    if (bytes) std::memcpy(out, data, bytes);
  });
}

/// The tensors of a sequence, or the values of a map in the order of its keys, one after the other.
Tensor joined(const std::vector<Tensor>& parts) {
  if (parts.empty()) return Tensor::of<float>({0}, {});
  std::int64_t count = 0;
  for (const Tensor& part : parts) count += part.elements();
  if (parts[0].dtype() == DType::string) {
    std::vector<std::string> all;
    for (const Tensor& part : parts) all.insert(all.end(), part.strings().begin(), part.strings().end());
    return Tensor({count}, std::move(all));
  }
  return Tensor::make(parts[0].dtype(), {count}, [&](std::byte* out) {
    for (const Tensor& part : parts) {
      if (part.bytes()) std::memcpy(out, part.data(), part.bytes());
      out += part.bytes();
    }
  });
}

}  // namespace

Tensor from_ort(const OrtCalls& ort, const OrtValue* value) {
  if (!value) return {};
  ONNXType type = ONNX_TYPE_UNKNOWN;
  ort.check(ort->GetValueType(value, &type));
  if (type == ONNX_TYPE_TENSOR) return tensor_from_ort(ort, value);
  if (type != ONNX_TYPE_SEQUENCE && type != ONNX_TYPE_MAP) return {};
  OrtAllocator* allocator = nullptr;
  ort.check(ort->GetAllocatorWithDefaultOptions(&allocator));
  const auto part = [&](std::size_t index) {
    OrtValue* element = nullptr;
    ort.check(ort->GetValue(value, static_cast<int>(index), allocator, &element));
    const OrtValueHeld held = OrtCalls::hold(element, ort->ReleaseValue);
    return from_ort(ort, held.get());
  };
  if (type == ONNX_TYPE_MAP) return part(1);  // 0: the keys
  std::size_t count = 0;
  ort.check(ort->GetValueCount(value, &count));
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < count; ++i) parts.push_back(part(i));
  return joined(parts);
}

void OrtCalls::check(OrtStatus* status) const {
  if (!status) return;
  std::string message = api_->GetErrorMessage(status);
  api_->ReleaseStatus(status);
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  throw Error(ErrorKind::unsupported, message).within("ONNX Runtime");
}

}  // namespace modelflow
