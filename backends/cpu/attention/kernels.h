// The ops and kernels of attention, best first within each op.
#pragma once

#include <array>

#include "modelflow/kernel.h"

namespace modelflow::ops {
extern const FusedOp attention_op, qattention_op, attention_bf16_op, channel_attention_op, talking_heads_op;
}

namespace modelflow::cpu {

inline constexpr std::array kAttentionOps = {&ops::attention_op, &ops::qattention_op, &ops::attention_bf16_op,
                                             &ops::channel_attention_op, &ops::talking_heads_op};

extern const Kernel attention_avx512, attention_any;
extern const Kernel qattention_vnni, qattention_any;
extern const Kernel attention_bf16_amx, attention_bf16_any;
extern const Kernel channel_attention;
extern const Kernel talking_heads_avx512, talking_heads_avx2;

inline constexpr std::array kAttentionKernels = {
    // Attention
    &attention_avx512,
    &attention_any,
    // QAttention
    &qattention_vnni,
    &qattention_any,
    // AttentionBf16
    &attention_bf16_amx,
    &attention_bf16_any,
    // ChannelAttention
    &channel_attention,
    // TalkingHeads
    &talking_heads_avx512,
    &talking_heads_avx2,
};

}  // namespace modelflow::cpu
