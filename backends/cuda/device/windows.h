// Windows of convolutions over images: where they lie in x, and the tile of pixels that a product over them fetches.
#pragma once

#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/rows.h"
#include "backends/cuda/launches/products.h"

namespace modelflow::cuda {

/// A place of a window.
struct Tap {
  int plane, row, column;
};

/// The place of that number. A division takes long, and is left out for windows of one plane; so it is below.
__device__ inline Tap tap_of(const ConvLaunch& c, int place) {
  const int line = place / c.axis[2].kernel, plane = c.axis[0].kernel == 1 ? 0 : line / c.axis[1].kernel;
  return {plane, line - plane * c.axis[1].kernel, place - line * c.axis[2].kernel};
}

/// A pixel of y, and where the window over it begins in x; outside of y, far outside of x.
struct Window {
  std::int64_t image, plane, row, column;  ///< where the image lies in x, and a place in it
  std::int64_t y;                          ///< where the pixel lies in y

  Window() = default;
  __device__ Window(const ConvLaunch& c, std::int64_t pixel) {
    constexpr std::int64_t kFarAway = -(std::int64_t{1} << 40);
    const auto& [planes, rows, columns] = c.axis;
    const std::int64_t line = pixel / columns.out, area = rows.out == 1 ? line : line / rows.out;
    const std::int64_t n = planes.out == 1 ? area : area / planes.out;
    const std::int64_t d = area - n * planes.out, h = line - area * rows.out, w = pixel - line * columns.out;
    image = n * c.x_image;
    plane = n < c.batch ? d * planes.stride - planes.begin : kFarAway;
    row = h * rows.stride - rows.begin;
    column = w * columns.stride - columns.begin;
    y = n * c.y_image + d * planes.y + h * rows.y + w * columns.y;
  }

  /// Where in x the number is that meets that place of the filter, before channels; -1 for none.
  __device__ std::int64_t at(const ConvLaunch& c, const Tap& tap) const {
    const auto& [planes, rows, columns] = c.axis;
    const std::int64_t d = plane + std::int64_t{tap.plane} * planes.dilation;
    const std::int64_t h = row + std::int64_t{tap.row} * rows.dilation;
    const std::int64_t w = column + std::int64_t{tap.column} * columns.dilation;
    if (d < 0 || d >= planes.in || h < 0 || h >= rows.in || w < 0 || w >= columns.in) return -1;
    return image + d * planes.x + h * rows.x + w * columns.x;
  }
};

/// What a filter sees of N channels side by side, the first of which is at `at`.
template <class T, int N>
__device__ inline void look(const ConvLaunch& c, std::int64_t at, int channel, float (&to)[N]) {
  read<T, N>(static_cast<const T*>(c.x) + at, to);
  if (!c.pre_scale) return;
  float scale[N], shift[N];
  read<T, N>(static_cast<const T*>(c.pre_scale) + channel, scale);
  read<T, N>(static_cast<const T*>(c.pre_shift) + channel, shift);
  for (int i = 0; i < N; ++i) {
    const float x = to[i] * scale[i] + shift[i];
    to[i] = rounded<T>(x < 0 ? 0.0F : x);
  }
}

template <class T>
__device__ inline float look(const ConvLaunch& c, std::int64_t at, int channel) {
  float x[1];
  look<T, 1>(c, at, channel, x);
  return x[0];
}

/// What a filter sees of one number of x that is in the image; `outside` elsewhere.
template <class T>
__device__ inline T outside(const ConvLaunch& c) {
  if constexpr (sizeof(T) == 1) return static_cast<T>(c.outside);
  return T(0.0F);
}

/// Pixels times what their windows see: the tile of A. The rows that a thread fetches are the same in every step.
template <class T, class Shape>
struct Pixels {
  using ATile = Tile<T, Shape::kRows, false>;
  static constexpr int kOnce = kChunk<T>, kChunks = kDeep<T> / kOnce;
  static constexpr int kEach = Shape::kRows * kChunks / Shape::kThreads;
  Window windows[kEach];

  __device__ Pixels(const ConvLaunch& c, std::int64_t first) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) windows[i] = Window(c, first + row_of(i));
  }
  __device__ static int row_of(int i) { return (static_cast<int>(threadIdx.x) + i * Shape::kThreads) / kChunks; }

  __device__ void fetch(const ConvLaunch& c, T* tile, int k0) const {
    const int depth = places_of(c) * c.channels, chunk = static_cast<int>(threadIdx.x) % kChunks * kOnce;
    const int k = k0 + chunk;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      T* const to = tile + row_of(i) * ATile::kStride + chunk;
      if (c.step_x == kOnce) {
        const std::int64_t at = k < depth ? place(c, i, k) : -1;
        if (c.pre_scale && at >= 0) {
          seen(c, at, k % c.channels, to);
        } else {
          move<16>(c, at, to);
        }
      } else if (c.step_x == kOnce / 2) {
        move<8>(c, k < depth ? place(c, i, k) : -1, to);
        move<8>(c, k + kOnce / 2 < depth ? place(c, i, k + kOnce / 2) : -1, to + kOnce / 2);
      } else {
        for (int e = 0; e < kOnce; ++e) {
          const std::int64_t at = k + e < depth ? place(c, i, k + e) : -1;
          to[e] = at < 0 ? outside<T>(c) : T(look<T>(c, at, (k + e) % c.channels));
        }
      }
    }
  }

 private:
  /// Channels side by side, as they lie.
  template <int bytes>
  __device__ static void move(const ConvLaunch& c, std::int64_t at, T* to) {
    const T* const from = static_cast<const T*>(c.x) + (at < 0 ? 0 : at);
    if constexpr (sizeof(T) == 1) {
      if (at < 0) {
        Pack<T, bytes> pack;
        for (int i = 0; i < bytes; ++i) pack.of[i] = outside<T>(c);
        *reinterpret_cast<Pack<T, bytes>*>(to) = pack;
        return;
      }
    }
    bytes == 16 ? copy_async_16(to, from, at < 0 ? 0 : bytes) : copy_async_8(to, from, at < 0 ? 0 : bytes);
  }

  __device__ static void seen(const ConvLaunch& c, std::int64_t at, int channel, T* to) {
    float x[kOnce];
    look<T, kOnce>(c, at, channel, x);
    write<T, kOnce>(x, to);
  }

  __device__ std::int64_t place(const ConvLaunch& c, int i, int k) const {
    const std::int64_t at = windows[i].at(c, tap_of(c, k / c.channels));
    return at < 0 ? -1 : at + k % c.channels;
  }
};

}  // namespace modelflow::cuda
