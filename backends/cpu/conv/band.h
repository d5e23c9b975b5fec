// The part of an image that a block of output rows and columns reads.
#pragma once

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {

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

}  // namespace modelflow::cpu
