// Taps of a whole axis, as loops read them.
#pragma once

#include <cstddef>

#include "backends/cpu/loops/resize.h"
#include "backends/taps.h"

namespace modelflow::cpu {

/// How many bytes its lists take.
std::size_t bytes_of_taps(const Interpolation& how, const ResizedAxis& axis);
/// Fills `memory`, which is aligned for vectors and as large as that.
Taps make_taps(const Interpolation& how, const ResizedAxis& axis, std::byte* memory);

}  // namespace modelflow::cpu
