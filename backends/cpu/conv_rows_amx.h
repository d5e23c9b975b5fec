#pragma once

#include "backends/cpu/conv_problem.h"
#include "backends/cpu/tiles.h"

namespace modelflow::cpu {

/// The windows of output pixels as rows of a product: pixel0 + i of all images is row i of `panels`, kernel positions
/// after each other, the channels of each side by side; rounded to bfloat16. x is channels last, without groups. Fills
/// the panels [begin, end). Only where host_isa() >= Isa::amx.
void round_windows_amx(const ConvGeometry& g, const float* x, std::int64_t pixel0, const TilePanels& panels,
                       std::size_t begin, std::size_t end, std::byte* out);

}  // namespace modelflow::cpu
