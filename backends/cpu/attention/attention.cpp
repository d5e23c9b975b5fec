// The kernels of Attention, QAttention and AttentionBf16: heads are shared out in one way, and each instruction set has
// its arithmetic.
#include <algorithm>

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/problem.h"

namespace modelflow::cpu {
namespace {

double vector_cost(const Call& call, const Target& target) {
  return std::max(target.compute(attention_flops(call), 0.6), target.stream(attention_bytes(call)));
}

double plain_cost(const Call& call, const Target& target) {
  return std::max(target.compute(attention_flops(call), 0.4), target.stream(attention_bytes(call)));
}

/// The same with operands that are rounded first, all keys and values for a few rows too.
double kept_cost(const Call& call, const Target& target) { return 1.3 * plain_cost(call, target); }

/// Of the products that an fma would take, a VNNI instruction does four and a tile of AMX more; what is left is the
/// softmax and rounding.
double low_cost(const Call& call, const Target& target, double products) {
  return std::max(target.compute(attention_flops(call, products), 0.6), target.stream(attention_bytes(call)));
}

}  // namespace

const Kernel attention_avx512 = {
    .op = "Attention",
    .name = "cpu.attention_avx512",
    .needs = Isa::avx512,
    .accepts = accepts_attention,
    .cost = vector_cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return attention_tasks(call, target, attention_code_avx512);
    },
};

const Kernel attention_any = {
    .op = "Attention",
    .name = "cpu.attention_any",
    .accepts = accepts_attention,
    .cost = plain_cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      const bool avx2 = target.has(Isa::avx2);
      return attention_tasks(call, target, avx2 ? attention_code_avx2 : attention_code_any);
    },
};

const Kernel qattention_vnni = {
    .op = "QAttention",
    .name = "cpu.qattention_vnni",
    .needs = Isa::avx512_vnni,
    .accepts = accepts_low_attention,
    .cost = [](const Call& call, const Target& target) { return low_cost(call, target, 4); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return attention_tasks(call, target, qattention_code_vnni);
    },
};

const Kernel qattention_any = {
    .op = "QAttention",
    .name = "cpu.qattention_any",
    .accepts = accepts_low_attention,
    .cost = kept_cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return attention_tasks(call, target, target.has(Isa::avx2) ? qattention_code_avx2 : qattention_code_any);
    },
};

const Kernel attention_bf16_amx = {
    .op = "AttentionBf16",
    .name = "cpu.attention_bf16_amx",
    .needs = Isa::amx,
    .accepts = accepts_low_attention,
    .cost = [](const Call& call, const Target& target) { return low_cost(call, target, 16); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return attention_tasks(call, target, attention_bf16_code_amx);
    },
};

const Kernel attention_bf16_any = {
    .op = "AttentionBf16",
    .name = "cpu.attention_bf16_any",
    .accepts = accepts_low_attention,
    .cost = kept_cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return attention_tasks(call, target, target.has(Isa::avx2) ? attention_bf16_code_avx2 : attention_bf16_code_any);
    },
};

}  // namespace modelflow::cpu
