// The table of kernels, joined from the lists of the rooms, and the choice of the first kernel that fits a call.
#include <algorithm>
#include <array>

// A list for each room that has kernels.
#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/cpu/qconv/kernels.h"
#include "backends/cpu/recurrent/kernels.h"
#include "backends/cpu/rows/kernels.h"

namespace modelflow {
namespace {

/// One list of several.
template <std::size_t... sizes>
constexpr auto joined(const std::array<const Kernel*, sizes>&... lists) {
  std::array<const Kernel*, (sizes + ...)> all{};
  auto to = all.begin();
  ((to = std::copy(lists.begin(), lists.end(), to)), ...);
  return all;
}

constexpr auto kKernels =
    joined(cpu::kConvKernels, cpu::kGemmKernels, cpu::kQConvKernels, cpu::kAttentionKernels, cpu::kRecurrentKernels,
           cpu::kRowKernels, cpu::kPixelKernels, cpu::kElementwiseKernels);

}  // namespace

const cpu::VectorCode& cpu::vector_code(const Target& target) {
  if (target.isa >= Isa::avx512) return vector_code_avx512;
  return target.isa >= Isa::avx2 ? vector_code_avx2 : vector_code_any;
}

std::span<const Kernel* const> kernels() { return kKernels; }

Choice choose_kernel(const Call& call, const Target& target) {
  std::string reasons;
  for (const Kernel* kernel : kKernels) {
    if (kernel->op != call.op) continue;
    std::string why;
    if (kernel->device != target.device) {
      why = "runs on another device";
    } else if (target.device == Target::Device::cpu && target.isa < kernel->needs) {
      why = "needs " + std::string(name(kernel->needs));
    } else if (Verdict verdict = kernel->accepts(call); verdict) {
      return {kernel, {}};
    } else {
      why = verdict.reason;
    }
    if (!reasons.empty()) reasons += "; ";
    reasons += std::string(kernel->name) + ": " + why;
  }
  return {nullptr, reasons.empty() ? "no kernel for op " + call.op : reasons};
}

}  // namespace modelflow
