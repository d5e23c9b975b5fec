// Copies of image data into and out of the order that the AVX-512 convolutions work in. Only where
// host_isas().has(Isa::avx512).
#pragma once

#include <cstdint>

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {

/// A part of x with its zero padding around it. Pixels of one row are `pixel` floats apart, rows `row` floats; channels
/// are consecutive, or `plane` floats apart when `plane` is not 0.
struct Band {
  const float* data;
  std::int64_t row, pixel, plane;
};

/// The window of x that output rows and columns of a block read.
struct BandShape {
  std::int64_t rows, columns;            ///< of the band
  std::int64_t first_row, first_column;  ///< in x, may be negative
  std::int64_t step_h, step_w;           ///< between band rows and columns, in x
};

/// With `skip`, an axis with a kernel of one keeps only the positions that are read, so that its stride becomes one.
static inline BandShape band_shape(const ConvGeometry& p, const ConvBlock& block, bool skip) {
  const bool skip_h = skip && p.kernel_h == 1, skip_w = skip && p.kernel_w == 1;
  BandShape s{};
  s.step_h = skip_h ? p.stride_h : 1;
  s.step_w = skip_w ? p.stride_w : 1;
  const std::int64_t stride_h = skip_h ? 1 : p.stride_h, stride_w = skip_w ? 1 : p.stride_w;
  s.rows = (block.rows() - 1) * stride_h + (p.kernel_h - 1) * p.dilation_h + 1;
  s.columns = (block.columns() - 1) * stride_w + (p.kernel_w - 1) * p.dilation_w + 1;
  s.first_row = block.row0 * p.stride_h - p.top;
  s.first_column = block.column0 * p.stride_w - p.left;
  return s;
}

/// Copies the window into `to`: channels last with `pixel` floats per pixel, or one plane per channel (pixel == 1).
Band copy_band_avx512(const ConvProblem& p, const ConvBlock& block, const BandShape& s, std::int64_t pixel, float* to);

/// Residual and activation of `n` consecutive results of a convolution.
void finish_avx512(const ConvProblem& p, float* y, const float* added, std::int64_t n);

}  // namespace modelflow::cpu
