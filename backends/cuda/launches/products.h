// Products and convolutions, and what follows them.
#pragma once

#include "backends/activation.h"
#include "backends/cuda/launches.h"

namespace modelflow::cuda {

/// activation(sum * scale + bias, the residual before) and the residual after it, added or multiplied. In front of the
/// activation, what is negative is multiplied by the slope of its column: PRelu, where the activation is none. A bias
/// is of columns, or of the rows of a matrix.
struct EpilogueLaunch {
  enum class Residual : std::int32_t { none, before, after, times };
  const void *bias, *residual, *slopes;  ///< null where there is none
  Residual use;
  float scale;
  ActivationSpec activation;
  bool row_bias;
};

/// y = epilogue(a b): products of [m, k] and [k, n], either of which may lie transposed, on tensor cores or not.
struct MatMulLaunch {
  Number number;
  std::int64_t m, n, k, products;
  const void *a, *b;
  void* y;
  bool trans_a, trans_b;
  bool tensor_cores, large;     ///< in tiles of 128 x 128, where there are enough of them for all multiprocessors
  bool wide_a, wide_b, wide_y;  ///< may be moved 16 bytes at a time; the launcher sets them
  Places batches;               ///< of the matrices of a and b, by product
  EpilogueLaunch epilogue;
};

/// y = epilogue(a w) for one product of [m, k] and [k, n], where w is (b - middle) * scale: b lies as [n, k] in 4 or 8
/// bits, of 4 the lower half of a byte first, and `block` numbers of a row share a scale.
struct MatMulNBitsLaunch {
  Number number;
  std::int64_t m, n, k;
  const void* a;
  const std::uint8_t* b;
  const void* scale;  ///< [n, k / block]
  void* y;
  std::int32_t bits, block;
  bool tensor_cores, large;  ///< as in MatMulLaunch
  bool wide_y;               ///< may be moved 16 bytes at a time; the launcher sets it
  EpilogueLaunch epilogue;
};

/// y = epilogue(conv(x, w)) over volumes; an image is a volume of one plane, a line an image of one row. Weights lie as
/// [filter, plane, row, column, channel of the group], for `direct` as [plane, row, column, channel of the group,
/// filter].
struct ConvLaunch {
  struct Axis {
    std::int64_t in, out;  ///< extents of x and of y
    std::int64_t x, y;     ///< numbers from one index to the next
    std::int32_t kernel, stride, dilation, begin;
  };
  Number number;
  std::int64_t batch;
  std::int32_t channels, filters, group;
  Axis axis[3];                                         ///< planes, rows, columns
  std::int64_t x_image, x_channel, y_image, y_channel;  ///< numbers from one to the next
  const void *x, *w;
  const void *pre_scale, *pre_shift;  ///< by channel: the filter sees Relu(x * scale + shift); null: x
  void* y;
  bool direct;               ///< each result by itself: groups
  bool tensor_cores, large;  ///< as in MatMulLaunch; x has its channels last
  std::int32_t step_x;       ///< channels that are moved at once; the launcher sets it, and what follows
  bool wide_w, wide_y;       ///< may be moved 16 bytes at a time
  std::uint8_t outside;      ///< of 8-bit numbers: what the image is surrounded by
  EpilogueLaunch epilogue;   ///< the residual lies as y does
};

/// Pixels of an image of y.
constexpr std::int64_t area_of(const ConvLaunch& c) { return c.axis[0].out * c.axis[1].out * c.axis[2].out; }
constexpr std::int64_t pixels_of(const ConvLaunch& c) { return c.batch * area_of(c); }

/// Places of a window; times channels they are counted in 32 bits.
constexpr std::int32_t places_of(const ConvLaunch& c) { return c.axis[0].kernel * c.axis[1].kernel * c.axis[2].kernel; }

}  // namespace modelflow::cuda
