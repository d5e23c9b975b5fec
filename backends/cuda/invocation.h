// Memory of a device, copies into it and out of it, and an Invocation over it that runs kernels without a runtime, for
// tests and benchmarks.
#pragma once

#include <vector>

#include "backends/cuda/library.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// Memory of a device; throws Error(limit) when there is none left.
class DeviceMemory {
 public:
  DeviceMemory(const DeviceLibrary& library, std::size_t bytes);
  ~DeviceMemory() { library_->release(data_); }
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  void* data() const { return data_; }

 private:
  const DeviceLibrary* library_;
  void* data_ = nullptr;
};

/// A tensor of the host in memory of the device, and one of the device in memory of the host; done when they return.
DeviceMemory uploaded(const DeviceLibrary& library, const Tensor& tensor);
Tensor downloaded(const DeviceLibrary& library, const View& there, void* stream);

/// Throws Error(unsupported) where the work of the stream is recorded for a CUDA graph, of which `what` can be no part.
void refuse_capture(const DeviceLibrary& library, void* stream, const char* what);

///     DeviceInvocation call(library, {x, scale});
///     kernel->create(description, target)->run(call);
///     Tensor y = call.result(0, DType::f16);
class DeviceInvocation : public Invocation {
 public:
  DeviceInvocation(const DeviceLibrary& library, std::vector<Tensor> inputs);
  Device device() const override { return Device::cuda; }
  std::size_t inputs() const override { return inputs_.size(); }
  View input(std::size_t i) const override;
  void* output(std::size_t i, std::span<const std::int64_t> dims) override;
  void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) override;
  std::size_t threads() const override { return 1; }
  std::byte* scratch(std::size_t bytes) override;

  /// Output `i` of the last run, of the type that the op gives it, when the device is done.
  Tensor result(std::size_t i, DType dtype) const;

 private:
  struct Output {
    Dims dims;
    DeviceMemory memory;
  };
  const DeviceLibrary& library_;
  std::vector<Tensor> inputs_;
  std::vector<DeviceMemory> uploaded_, scratch_;
  std::vector<Output> outputs_;
};

}  // namespace modelflow::cuda
