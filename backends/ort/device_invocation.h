// An Invocation on ONNX Runtime's CUDA provider: the session's stream, and scratch memory from its arena.
#pragma once

#include <vector>

#include "backends/ort/invocation.h"

namespace modelflow::ort {

class DeviceInvocation : public OrtInvocation {
 public:
  /// `allocator`: that of the node's provider. `threads`: of the host, for what runs there after all.
  DeviceInvocation(const OrtApi& api, OrtKernelContext* context, ScratchPool& pool, const Known& known,
                   OrtAllocator* allocator, std::size_t threads);
  ~DeviceInvocation() override;
  Device device() const override { return Device::cuda; }
  void* stream() const override { return stream_; }
  std::byte* scratch(std::size_t bytes) override;

 private:
  const OrtApi& api_;
  OrtKernelContext* context_;
  OrtAllocator* allocator_;
  void* stream_ = nullptr;
  std::vector<void*> scratch_;
};

}  // namespace modelflow::ort
