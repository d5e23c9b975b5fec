// Runs parallel loops on ONNX Runtime's workers, and reads and allocates its tensors.
#include "backends/ort/invocation.h"

#include <atomic>
#include <exception>

#include "backends/parallel.h"

namespace modelflow::ort {
namespace {

struct Loop {
  const std::function<void(std::size_t)>& body;
  std::atomic<bool> failed{false};
  std::exception_ptr error;
};

// Runs on the runtime's workers; an exception must not leave it.
void run_one(void* data, std::size_t i) noexcept {
  auto& loop = *static_cast<Loop*>(data);
  try {
    ParallelRegion region;
    loop.body(i);
  } catch (...) {
    if (!loop.failed.exchange(true)) loop.error = std::current_exception();
  }
}

}  // namespace

OrtInvocation::OrtInvocation(const OrtApi& api, OrtKernelContext* context, ScratchPool& pool, const Known& known,
                             std::size_t threads)
    : api_(api),
      context_(context),
      pool_(pool),
      known_(known),
      threads_(threads),
      many_(known.size() > kUsual ? known.size() : 0),
      inputs_(many_.empty() ? std::span<Input>(few_) : std::span<Input>(many_)) {
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (!known_[i]) read_input(i);
}

OrtInvocation::~OrtInvocation() {
  for (ScratchPool::Block& block : scratch_) pool_.give_back(std::move(block));
}

void OrtInvocation::read_input(std::size_t i) {
  const OrtValue* value = nullptr;
  check(api_, api_.KernelContext_GetInput(context_, i, &value));
  if (!value) throw Error(ErrorKind::invalid_input, "input " + std::to_string(i) + " is missing");
  OrtTensorTypeAndShapeInfo* made = nullptr;
  check(api_, api_.GetTensorTypeAndShape(value, &made));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> type(
      made, api_.ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType dtype = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  check(api_, api_.GetTensorElementType(type.get(), &dtype));
  check(api_, api_.GetDimensionsCount(type.get(), &rank));
  Input& in = inputs_[i];
  in.dtype = static_cast<DType>(dtype);
  in.dims.resize(rank);
  check(api_, api_.GetDimensions(type.get(), in.dims.data(), rank));
  void* data = nullptr;
  check(api_, api_.GetTensorMutableData(const_cast<OrtValue*>(value), &data));
  in.data = data;
}

View OrtInvocation::input(std::size_t i) const {
  if (i >= known_.size()) throw Error(ErrorKind::internal, "the kernel asks for input " + std::to_string(i));
  if (known_[i]) return {known_[i]->dtype(), known_[i]->dims(), known_[i]->data()};
  return {inputs_[i].dtype, inputs_[i].dims, inputs_[i].data};
}

void* OrtInvocation::output(std::size_t i, std::span<const std::int64_t> dims) {
  OrtValue* value = nullptr;
  check(api_, api_.KernelContext_GetOutput(context_, i, dims.data(), dims.size(), &value));
  if (!value) throw Error(ErrorKind::invalid_input, "output " + std::to_string(i) + " is not wanted");
  void* data = nullptr;
  check(api_, api_.GetTensorMutableData(value, &data));
  return data;
}

void OrtInvocation::parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) {
  Loop loop{body, {}, {}};
  if (tasks < 2 || threads_ < 2 || ParallelRegion::active()) {
    for (std::size_t i = 0; i < tasks; ++i) run_one(&loop, i);
  } else {
    // num_batch 0: every index is claimed by itself by whichever worker is free.
    check(api_, api_.KernelContext_ParallelFor(context_, run_one, tasks, 0, &loop));
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

std::byte* OrtInvocation::scratch(std::size_t bytes) {
  ScratchPool::Block block = pool_.take(bytes);
  if (!block.bytes) throw Error(ErrorKind::limit, "no scratch memory for " + std::to_string(bytes) + " bytes");
  return scratch_.emplace_back(std::move(block)).bytes.get();
}

}  // namespace modelflow::ort
