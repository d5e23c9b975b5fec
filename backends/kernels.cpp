// The tables of fused ops and of kernels, joined from the lists of the rooms, and the choice of the first kernel that
// fits a call.
#include <algorithm>
#include <array>

// Each room that has kernels lists them and the ops that they are for.
#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/cpu/qconv/kernels.h"
#include "backends/cpu/recurrent/kernels.h"
#include "backends/cpu/rows/kernels.h"
#include "backends/cuda/kernels.h"

namespace modelflow {
namespace {

/// One list of several.
template <class T, std::size_t... sizes>
constexpr auto joined(const std::array<const T*, sizes>&... lists) {
  std::array<const T*, (sizes + ...)> all{};
  auto to = all.begin();
  ((to = std::copy(lists.begin(), lists.end(), to)), ...);
  return all;
}

constexpr auto kFusedOps = joined(cpu::kConvOps, cpu::kGemmOps, cpu::kQConvOps, cpu::kAttentionOps, cpu::kRecurrentOps,
                                  cpu::kRowOps, cpu::kPixelOps, cpu::kElementwiseOps);

constexpr auto kKernels =
    joined(cpu::kConvKernels, cpu::kGemmKernels, cpu::kQConvKernels, cpu::kAttentionKernels, cpu::kRecurrentKernels,
           cpu::kRowKernels, cpu::kPixelKernels, cpu::kElementwiseKernels, cuda::kKernels);

}  // namespace

const cpu::VectorCode& cpu::vector_code(const Target& target) {
  if (target.has(Isa::avx512)) return vector_code_avx512;
  return target.has(Isa::avx2) ? vector_code_avx2 : vector_code_any;
}

std::span<const FusedOp* const> fused_ops() { return kFusedOps; }

std::span<const Kernel* const> kernels() { return kKernels; }

Verdict Kernel::fits(const Target& target) const {
  if (device != target.device) return no("runs on another device");
  if (device == Device::cpu && !target.has(needs)) return no("needs " + needs.str());
  return target.sm >= sm ? yes() : no("needs sm_" + std::to_string(sm));
}

Verdict Kernel::takes(const Call& call, const Target& target) const {
  if (op != call.op) return no("is for op " + std::string(op));
  const Verdict verdict = fits(target);
  return verdict ? accepts(call, target) : verdict;
}

bool takes_any_float(const FusedOp& op) {
  const bool floats = std::ranges::count(op.input_types, DType::f32) > 0;
  return floats && (op.form == Form::f32 || op.form == Form::weight_only || !op.single.empty());
}

Choice choose_kernel(const Call& call, const Target& target) {
  std::string reasons;
  for (const Kernel* kernel : kKernels) {
    if (kernel->op != call.op) continue;
    const Verdict verdict = kernel->takes(call, target);
    if (verdict) return {kernel, {}};
    if (!reasons.empty()) reasons += "; ";
    reasons += std::string(kernel->name) + ": " + verdict.reason;
  }
  return {nullptr, reasons.empty() ? "no kernel for op " + call.op : reasons};
}

}  // namespace modelflow
