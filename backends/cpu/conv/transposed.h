// Transposed convolutions whose windows overlap, or that drop results at the border.
#pragma once

#include <memory>

#include "backends/cpu/gemm/f32.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// As products of pixels by all results that see them.
std::unique_ptr<Implementation> overlapping_conv_transpose(const Call& call, const Target& target, const F32Code& code);

/// As windows that are added, and whether that takes less: the registers of the other way would be empty for the most
/// part.
std::unique_ptr<Implementation> few_conv_transpose(const Call& call, const Target& target, const F32Code& code);
bool few_filters(const Call& call, const F32Code& code);

}  // namespace modelflow::cpu
