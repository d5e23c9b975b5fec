// Carries tensors to the memory of a device and back.
#include "backends/cuda/invocation.h"

#include <utility>

namespace modelflow::cuda {

DeviceMemory::DeviceMemory(const DeviceLibrary& library, std::size_t bytes) : library_(&library) {
  if (const char* why = library.allocate(&data_, bytes)) throw Error(ErrorKind::limit, std::string("device: ") + why);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : library_(other.library_), data_(std::exchange(other.data_, nullptr)) {}

DeviceMemory uploaded(const DeviceLibrary& library, const Tensor& tensor) {
  DeviceMemory memory(library, tensor.bytes());
  if (tensor.bytes() > 0) check("copy", library.copy(memory.data(), tensor.data(), tensor.bytes(), nullptr));
  check("synchronize", library.synchronize(nullptr));
  return memory;
}

Tensor downloaded(const DeviceLibrary& library, const View& there, void* stream) {
  return Tensor::make(there.dtype, Dims(there.dims.begin(), there.dims.end()), [&](std::byte* bytes) {
    const std::size_t size = byte_count(there.dtype, there.dims);
    if (size > 0) check("copy", library.copy(bytes, there.data, size, stream));
    check("synchronize", library.synchronize(stream));
  });
}

void refuse_capture(const DeviceLibrary& library, void* stream, const char* what) {
  if (stream && library.capturing(stream))
    throw Error(ErrorKind::unsupported,
                std::string("a CUDA graph cannot hold ") + what + ": open the session without enable_cuda_graph");
}

DeviceInvocation::DeviceInvocation(const DeviceLibrary& library, std::vector<Tensor> inputs)
    : library_(library), inputs_(std::move(inputs)) {
  for (const Tensor& input : inputs_) uploaded_.push_back(uploaded(library, input));
}

View DeviceInvocation::input(std::size_t i) const {
  return {inputs_.at(i).dtype(), inputs_.at(i).dims(), uploaded_.at(i).data()};
}

void* DeviceInvocation::output(std::size_t i, std::span<const std::int64_t> dims) {
  if (i != outputs_.size()) throw Error(ErrorKind::internal, "outputs are allocated in order, once");
  outputs_.push_back({Dims(dims.begin(), dims.end()), DeviceMemory(library_, byte_count(DType::f32, dims))});
  return outputs_.back().memory.data();
}

void DeviceInvocation::parallel(std::size_t, const std::function<void(std::size_t)>&) {
  throw Error(ErrorKind::internal, "kernels of a device have no host threads");
}

std::byte* DeviceInvocation::scratch(std::size_t bytes) {
  return static_cast<std::byte*>(scratch_.emplace_back(library_, bytes).data());
}

Tensor DeviceInvocation::result(std::size_t i, DType dtype) const {
  const Output& output = outputs_.at(i);
  return downloaded(library_, {dtype, output.dims, output.memory.data()}, nullptr);
}

}  // namespace modelflow::cuda
