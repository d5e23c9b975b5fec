// Quantization of images that also moves their channels from second to last place, and the way back.
#pragma once

#include "backends/cpu/loops/bytes.h"

namespace modelflow::cpu {

/// See ByteLoops.
void quantize_last_avx512(const Quantization& q, const Planes& planes, const float* x, std::uint8_t* y);
void dequantize_second_avx512(const Quantization& q, const Planes& planes, const std::uint8_t* x, float* y);

}  // namespace modelflow::cpu
