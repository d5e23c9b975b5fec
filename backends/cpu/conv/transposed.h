// Transposed convolutions whose windows overlap, or that drop results at the border.
#pragma once

#include <memory>

#include "backends/cpu/gemm/f32.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

std::unique_ptr<Implementation> overlapping_conv_transpose(const Call& call, const Target& target, const F32Code& code);

}  // namespace modelflow::cpu
