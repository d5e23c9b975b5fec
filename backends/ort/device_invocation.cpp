// Asks the runtime for a stream and for memory that belongs to the work in it.
#include "backends/ort/device_invocation.h"

#include <algorithm>

namespace modelflow::ort {

DeviceInvocation::DeviceInvocation(const OrtApi& api, OrtKernelContext* context, ScratchPool& pool, const Known& known,
                                   OrtAllocator* allocator, std::size_t threads)
    : OrtInvocation(api, context, pool, known, threads), api_(api), context_(context), allocator_(allocator) {
  check(api_, api_.KernelContext_GetGPUComputeStream(context_, &stream_));
}

DeviceInvocation::~DeviceInvocation() {
  for (void* block : scratch_) allocator_->Free(allocator_, block);
}

std::byte* DeviceInvocation::scratch(std::size_t bytes) {
  const OrtMemoryInfo* memory = nullptr;
  check(api_, api_.AllocatorGetInfo(allocator_, &memory));
  void* block = nullptr;
  const std::size_t some = std::max<std::size_t>(bytes, 1);  // the runtime has no block for 0 bytes
  check(api_, api_.KernelContext_GetScratchBuffer(context_, memory, some, &block));
  if (!block) throw Error(ErrorKind::limit, "no device memory for " + std::to_string(bytes) + " bytes");
  return static_cast<std::byte*>(scratch_.emplace_back(block));
}

}  // namespace modelflow::ort
