// Transposed convolutions: the results that are made of the same pixels are one product.
#pragma once

#include "backends/cuda/launches/products.h"

namespace modelflow::cuda {

/// Neighbours among the results of an axis that are made of the same inputs: stride * v + first + n, for v < places and
/// n < size, sees x[v + shift + i] for i < taps, times tap nearest + n + stride * (taps - 1 - i) of the window.
struct TransposedGroup {
  std::int64_t places, shift;
  std::int32_t first, size, taps, nearest;
};

struct TransposedAxis {
  static constexpr int kGroups = 4;  ///< at most, as ops::phase_groups() says
  std::int64_t in, out;
  std::int32_t kernel, stride, groups;
  TransposedGroup group[kGroups];
};

/// y = epilogue(transposed conv(x, w)) over volumes, channels last; an image is a volume of one plane, a line an image
/// of one row. Weights lie as [plane, row, column, filter, channel].
struct ConvTransposeLaunch {
  Number number;
  std::int64_t batch;
  std::int32_t channels, filters;
  TransposedAxis axis[3];  ///< planes, rows, columns
  const void *x, *w;
  void* y;
  bool tensor_cores, large;     ///< as in MatMulLaunch
  bool wide_x, wide_w, wide_y;  ///< may be moved 16 bytes at a time; the launcher sets them
  EpilogueLaunch epilogue;      ///< without a residual
};

/// A group of each axis, whose results are a product: rows [image, places], columns [neighbours, filter], and along the
/// depth [taps, channel].
struct TransposedPart {
  static constexpr int kMost = TransposedAxis::kGroups * TransposedAxis::kGroups * TransposedAxis::kGroups;
  TransposedGroup d, h, w;
};

constexpr int parts_of(const ConvTransposeLaunch& c) { return c.axis[0].groups * c.axis[1].groups * c.axis[2].groups; }

constexpr TransposedPart part_of(const ConvTransposeLaunch& c, int part) {
  const int columns = c.axis[2].groups, rows = c.axis[1].groups;
  return {c.axis[0].group[part / columns / rows], c.axis[1].group[part / columns % rows],
          c.axis[2].group[part % columns]};
}

constexpr std::int64_t rows_of(const ConvTransposeLaunch& c, const TransposedPart& part) {
  return c.batch * part.d.places * part.h.places * part.w.places;
}

/// Those of weights, and of pixels without any, are counted in 32 bits; so is the depth.
constexpr std::int32_t columns_of(const ConvTransposeLaunch& c, const TransposedPart& part) {
  return part.d.size * part.h.size * part.w.size * c.filters;
}

constexpr std::int32_t depth_of(const ConvTransposeLaunch& c, const TransposedPart& part) {
  return part.d.taps * part.h.taps * part.w.taps * c.channels;
}

/// Tiles of so many rows and columns.
constexpr std::int64_t tiles_of(const ConvTransposeLaunch& c, const TransposedPart& part, int rows, int columns) {
  return (rows_of(c, part) + rows - 1) / rows * ((columns_of(c, part) + columns - 1) / columns);
}

}  // namespace modelflow::cuda
