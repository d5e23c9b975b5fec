// What goes from the host to kernels over images: normalization in groups, pooling, other sizes, copies of pixels, axes
// in another order, squeeze and excitation.
#pragma once

#include "backends/activation.h"
#include "backends/cuda/launches.h"
#include "backends/taps.h"

namespace modelflow::cuda {

/// An image tensor: [batch, rows, channels] or, with channels second, [batch, channels, rows]. Sums over rows are made
/// in `parts` of them.
struct Image {
  Number number;
  std::int64_t batch, rows, channels;
  bool last;
  std::int64_t parts;
  const void* x;
};

/// y = activation(x normalized within its group of channels * scale + bias).
struct GroupNormLaunch {
  Image image;  ///< channels second: the parts are of a group, else of the rows
  std::int64_t groups;
  const void *scale, *bias;
  void* y;
  float*
      partial;  ///< mean and squares around it: [batch * groups, parts, 2], channels last [batch, parts, channels, 2]
  float* moments;  ///< [batch * groups, 2]: mean and factor
  float epsilon;
  ActivationSpec activation;
};

/// Windows of a volume with channels last; an absent axis has extent, kernel and stride 1.
struct PoolLaunch {
  struct Axis {
    std::int64_t in, out, kernel, stride, begin;
  };
  Number number;
  std::int64_t batch, channels;
  Axis axis[3];     ///< planes, rows, columns
  bool max;         ///< else the mean
  bool counts_pad;  ///< the mean counts what lies outside of the image
  const void* x;
  void* y;
};

/// Images of another size. Channels first, every channel is an image of one.
struct InterpolateLaunch {
  Number number;
  Interpolation how;
  std::int64_t images, channels;
  ResizedAxis high, wide;
  bool flat;  ///< lines alone: there is nothing between them
  const void* x;
  void* y;
};

/// Means over the rows.
struct ChannelMeanLaunch {
  Image image;
  float* sums;  ///< [batch, parts, channels]
  void* y;      ///< [batch, channels]
};

/// Channels of up to eight images with channels last side by side, smaller ones repeated. Sizes are in bytes, as it
/// moves any type.
struct CopyLaunch {
  static constexpr int kImages = 8;
  struct Source {
    const void* x;
    std::int64_t high, wide, pixel;
    std::int64_t up, across;  ///< how often each line and each pixel counts
  };
  std::int32_t images;
  Source from[kImages];
  std::int64_t batch, high, wide, pixel;  ///< of y
  void* y;
};

/// Axes in another order. Either rows of numbers stay together, or two axes change places in tiles: the last one of y,
/// whose numbers are the rows of a tile, and the one whose numbers lie side by side in x, its columns.
struct TransposeLaunch {
  static constexpr int kAxes = Places::kAxes;
  struct Axis {
    std::int64_t extent, x, y;  ///< and numbers from one index to the next
  };
  std::int32_t bytes;  ///< of a number
  std::int32_t axes;
  Axis outer[kAxes];  ///< those that rows, or tiles, are counted through
  std::int64_t row;   ///< numbers that stay together; 0: there are tiles
  Axis rows, columns;
  std::int32_t high, wide;  ///< of a tile
  const void* x;
  void* y;
};

/// x * gate(w2 activation(w1 mean + b1) + b2) for each channel; plus x with `skip`. Where x and y are steps of 8 bits,
/// the weights are float32.
struct ExciteLaunch {
  Image image;
  Steps x_steps, y_steps;
  std::int64_t squeezed;
  ActivationSpec activation, gate;
  bool skip;
  const void *w1, *b1, *w2, *b2;
  float *sums, *hidden, *factors;  ///< [batch, parts, channels], [batch, squeezed], [batch, channels]
  void* y;
};

}  // namespace modelflow::cuda
