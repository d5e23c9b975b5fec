#include "backends/kernels.h"

#include <array>

#include "backends/cpu/vector_code.h"

namespace modelflow {
namespace {

// Best first: choose_kernel takes the first one that fits.
constexpr std::array kKernels = {
    &cpu::conv_depthwise_avx512,
    &cpu::conv_winograd_avx512,
    &cpu::conv_dense_avx512,
    &cpu::onednn_conv,
    &cpu::matmul_amx,
    &cpu::matmul_avx512,
    &cpu::onednn_matmul,
    &cpu::activation,
    &cpu::squeeze_excite,
    &cpu::pool,
    &cpu::upsample,
    &cpu::conv_transpose_avx512,
    &cpu::concat,
    &cpu::pointwise,
    &cpu::layer_norm,
    &cpu::group_norm,
    &cpu::attention_avx512,
    &cpu::attention_any,
    &cpu::rotary,
    &cpu::softmax,
    &cpu::embedding,
    &cpu::reduce,
    &cpu::lstm_avx512,
    &cpu::lstm_any,
    &cpu::gru_avx512,
    &cpu::gru_any,
    &cpu::matmul_bf16_amx,
    &cpu::onednn_matmul_bf16,
    &cpu::matmul_bf16_avx512,
    &cpu::matmul_bf16_widened,
    &cpu::conv_bf16_amx,
    &cpu::onednn_conv_bf16,
    &cpu::conv_bf16_widened,
    &cpu::matmul_to_bf16_amx,
    &cpu::onednn_matmul_to_bf16,
    &cpu::matmul_to_bf16_widened,
    &cpu::conv_to_bf16_amx,
    &cpu::onednn_conv_to_bf16,
    &cpu::conv_to_bf16_widened,
    &cpu::pool_bf16,
    &cpu::qconv_depthwise_vnni,
    &cpu::qconv_dense_amx,
    &cpu::qconv_dense_vnni,
    &cpu::qconv_any,
    &cpu::qmatmul_amx,
    &cpu::qmatmul_vnni,
    &cpu::qmatmul_any,
    &cpu::qattention_vnni,
    &cpu::qattention_any,
    &cpu::attention_bf16_amx,
    &cpu::attention_bf16_any,
    &cpu::qmatmul4_vnni,
    &cpu::qmatmul4_any,
    &cpu::qlstm_vnni,
    &cpu::qlstm_any,
    &cpu::qgru_vnni,
    &cpu::qgru_any,
    &cpu::qconv_transpose_vnni,
    &cpu::qconv_transpose_any,
    &cpu::qconv_transpose_float_vnni,
    &cpu::qconv_transpose_float_any,
    &cpu::qpool,
    &cpu::qadd,
    &cpu::qupsample,
    &cpu::qsqueeze_excite,
    &cpu::quantize,
    &cpu::dequantize,
};

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
