// Copies of 8-bit image data into and out of the order that convolutions over vectors work in. Only where
// host_isas().has(Isa::avx2).
#pragma once

#include <cstdint>

#include "backends/cpu/conv/band.h"

namespace modelflow::cpu {

/// Copies the window of x that `shape` names into `to`, channels last, pixels packed, `zero` where it leaves x.
void copy_band_bytes(const ConvGeometry& g, const std::uint8_t* x, std::int64_t image, const BandShape& shape,
                     std::uint8_t zero, std::uint8_t* to);

/// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns.
void transpose_bytes(const std::uint8_t* x, std::int64_t x_step, std::uint8_t* y, std::int64_t y_step,
                     std::int64_t rows, std::int64_t columns);

}  // namespace modelflow::cpu
