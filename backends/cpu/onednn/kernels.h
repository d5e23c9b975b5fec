// The kernels that call oneDNN; the lists of the rooms whose ops they serve give them their places.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cpu {

extern const Kernel onednn_conv, onednn_conv_bf16, onednn_conv_to_bf16;
extern const Kernel onednn_matmul, onednn_matmul_bf16, onednn_matmul_to_bf16;

}  // namespace modelflow::cpu
