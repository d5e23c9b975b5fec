// How long kernels take on a GPU, a table on the standard output: the samples of every op, and the calls of the models
// that MODELFLOW_GPU_MODELS names (files, separated by colons). On the emulator there is nothing to measure.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "backends/cuda/device_target.h"
#include "backends/cuda/invocation.h"
#include "src/measure/kernel_times.h"
#include "tests/cuda/cases.h"

namespace modelflow {
namespace {

/// One call, run again and again: outputs and scratch memory stay.
class Repeated : public cuda::DeviceInvocation {
 public:
  using cuda::DeviceInvocation::DeviceInvocation;
  void* output(std::size_t i, std::span<const std::int64_t> dims) override {
    if (i >= outputs_.size()) outputs_.push_back(cuda::DeviceInvocation::output(i, dims));
    return outputs_.at(i);
  }
  std::byte* scratch(std::size_t bytes) override {
    if (used_ == scratch_.size()) scratch_.push_back(cuda::DeviceInvocation::scratch(bytes));
    return scratch_.at(used_++);
  }
  void restart() { used_ = 0; }

 private:
  std::vector<void*> outputs_;
  std::vector<std::byte*> scratch_;
  std::size_t used_ = 0;
};

/// Seconds of a run, of as many as take a tenth of a second, started one behind the other.
double seconds_of(const Implementation& kernel, Repeated& call, const cuda::DeviceLibrary& library) {
  using Clock = std::chrono::steady_clock;
  double seconds = 0;
  for (int runs = 8; seconds < 0.1 && runs <= 1 << 20; runs *= 4) {
    cuda::check("synchronize", library.synchronize(nullptr));
    const auto start = Clock::now();
    for (int i = 0; i < runs; ++i) {
      call.restart();
      kernel.run(call);
    }
    cuda::check("synchronize", library.synchronize(nullptr));
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds >= 0.1) return seconds / runs;
  }
  return seconds / (1 << 20);
}

/// What the calls point to stays in `models`.
std::vector<Call> calls_to_time(std::vector<ModelCalls>& models) {
  std::vector<Call> calls;
  if (const char* files = std::getenv("MODELFLOW_GPU_MODELS")) {
    std::istringstream list(files);
    for (std::string file; std::getline(list, file, ':');) {
      const Model model = Model::load(file);
      std::map<std::string, Dims> extents;
      for (const auto& [input, tensor] : synthetic_feeds(model, Options()).front()) extents[input] = tensor.dims();
      models.push_back(fused_calls(model, extents));
    }
    for (const ModelCalls& model : models) calls.insert(calls.end(), model.calls.begin(), model.calls.end());
    return calls;
  }
  for (const FusedOp* op : fused_ops())
    for (const Call& sample : op->samples()) calls.push_back(sample);
  return calls;
}

/// What operands can be made up for.
bool complete(const Call& call) {
  return std::ranges::all_of(
      call.inputs, [](const Operand& in) { return in.constant || (in.dtype == DType::f32 && in.shape.known()); });
}

TEST(CudaTimes, OfEveryKernel) {
  std::string why;
  const cuda::DeviceLibrary* library = cuda::device_library(&why);
  if (!library) GTEST_SKIP() << why;
  if (std::string(library->built) == "emulated") GTEST_SKIP() << "the emulator has no times";
  const cuda::DeviceTargets::Found found = cuda::DeviceTargets(*library).of(0);
  if (!found.target) GTEST_SKIP() << found.why;
  const Target& target = *found.target;
  std::printf("| call | type | kernel | us | GB/s | of DRAM | GFLOP/s |\n|---|---|---|---|---|---|---|\n");
  std::vector<ModelCalls> models;
  for (const Call& sample : calls_to_time(models))
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      if (!complete(sample)) continue;
      const Case made = case_of(sample, type);
      const Choice choice = choose_kernel(made.call, target);
      if (!choice.kernel) continue;
      Repeated call(*library, made.operands);
      const std::unique_ptr<Implementation> kernel = choice.kernel->create(made.call, target);
      kernel->run(call);
      const double seconds = seconds_of(*kernel, call, *library);
      EXPECT_GT(seconds, 0);
      const double rate = bytes_of(made.call) / seconds, dram = target.bandwidth * target.cores;
      std::printf("| %s | %s | %s | %.2f | %.1f | %.0f %% | %.0f |\n", call_text(made.call).c_str(),
                  std::string(name(type)).c_str(), std::string(choice.kernel->name).c_str(), 1e6 * seconds, rate / 1e9,
                  100 * rate / dram, work_of(made.call).operations / seconds / 1e9);
    }
}

}  // namespace
}  // namespace modelflow
