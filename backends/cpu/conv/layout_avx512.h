// Copies of image data into and out of the order that the AVX-512 convolutions work in. Only where
// host_isas().has(Isa::avx512).
#pragma once

#include <cstdint>

#include "backends/cpu/conv/band.h"

namespace modelflow::cpu {

/// A part of x with its zero padding around it. Pixels of one row are `pixel` floats apart, rows `row` floats; channels
/// are consecutive, or `plane` floats apart when `plane` is not 0.
struct Band {
  const float* data;
  std::int64_t row, pixel, plane;
};

/// Copies the window into `to`: channels last with `pixel` floats per pixel, or one plane per channel (pixel == 1).
Band copy_band_avx512(const ConvProblem& p, const ConvBlock& block, const BandShape& s, std::int64_t pixel, float* to);

/// Residual and activation of `n` consecutive results of a convolution.
void finish_avx512(const ConvProblem& p, float* y, const float* added, std::int64_t n);

}  // namespace modelflow::cpu
