// ConvBf16 and ConvToBf16 on any CPU: Conv in float32.
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/problem.h"
#include "backends/cpu/gemm/widened.h"

namespace modelflow::cpu {
namespace {

Verdict accepts_convolution(const Call& call, const Target& target) {
  if (Verdict v = accepts_conv_bf16(call, 3); !v) return v;
  return onednn_conv.accepts(float_form(call), target);
}

}  // namespace

const Kernel conv_bf16_widened = {
    .op = "ConvBf16",
    .name = "cpu.conv_bf16_widened",
    .needs = Isa::avx2,
    .accepts = accepts_convolution,
    .cost = widened_cost,
    .create = create_widened,
};

const Kernel conv_to_bf16_widened = {
    .op = "ConvToBf16",
    .name = "cpu.conv_to_bf16_widened",
    .needs = Isa::avx2,
    .accepts = accepts_convolution,
    .cost = widened_cost,
    .create = create_widened,
};

}  // namespace modelflow::cpu
