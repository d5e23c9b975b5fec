// Convolutions: as products over gathered pixels, on tensor cores or in plain arithmetic, and each result by itself
// where groups leave little to share.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/epilogue.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/device/rows.h"

namespace modelflow::cuda {
namespace {

/// A pixel of y, and where the window over it begins in x; outside of y, far outside of x.
struct Window {
  std::int64_t image, top, left, y;

  __device__ Window(const ConvLaunch& c, std::int64_t pixel) {
    constexpr std::int64_t kFarAway = -(std::int64_t{1} << 40);
    const std::int64_t area = c.rows * c.columns, in = pixel % area, row = in / c.columns, column = in % c.columns;
    image = pixel / area;
    top = image < c.batch ? row * c.stride_h - c.top : kFarAway;
    left = column * c.stride_w - c.left;
    y = image * c.y_strides.image + row * c.y_strides.row + column * c.y_strides.column;
  }

  /// Where in x the number is that meets place (i, j) of the filter, before channels; -1 for none.
  __device__ std::int64_t at(const ConvLaunch& c, int i, int j) const {
    const std::int64_t row = top + i * c.dilation_h, column = left + j * c.dilation_w;
    if (row < 0 || row >= c.height || column < 0 || column >= c.width) return -1;
    return image * c.x_strides.image + row * c.x_strides.row + column * c.x_strides.column;
  }
};

/// What a filter sees of N channels side by side, the first of which is at `at`.
template <class T, int N>
__device__ void look(const ConvLaunch& c, std::int64_t at, int channel, float (&to)[N]) {
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
__device__ float look(const ConvLaunch& c, std::int64_t at, int channel) {
  float x[1];
  look<T, 1>(c, at, channel, x);
  return x[0];
}

/// Pixels times what their windows see: the tile of A. The rows that a thread fetches are the same in every step.
template <class T, class Shape>
struct Pixels {
  using ATile = Tile<T, Shape::kRows, false>;
  static constexpr int kChunks = Shape::kDeep / 8, kEach = Shape::kRows * kChunks / Shape::kThreads;
  std::int64_t image[kEach], top[kEach], left[kEach];

  __device__ Pixels(const ConvLaunch& c, std::int64_t first) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const Window window(c, first + row_of(i));
      image[i] = window.image * c.x_strides.image;
      top[i] = window.top;
      left[i] = window.left;
    }
  }
  __device__ static int row_of(int i) { return (static_cast<int>(threadIdx.x) + i * Shape::kThreads) / kChunks; }

  __device__ void fetch(const ConvLaunch& c, T* tile, int k0) const {
    const T* const x = static_cast<const T*>(c.x);
    const int depth = c.kernel_h * c.kernel_w * c.channels, chunk = static_cast<int>(threadIdx.x) % kChunks * 8;
    const int k = k0 + chunk;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      T* const to = tile + row_of(i) * ATile::kStride + chunk;
      if (c.wide_x) {  // eight channels of one place of the filter
        const std::int64_t at = k < depth ? place(c, i, k) : -1;
        if (!c.pre_scale || at < 0) {
          copy_async_16(to, at < 0 ? x : x + at, at < 0 ? 0 : 16);
          continue;
        }
        float seen[8];
        look<T, 8>(c, at, k % c.channels, seen);
        write<T, 8>(seen, to);
        continue;
      }
      for (int e = 0; e < 8; ++e) {
        const std::int64_t at = k + e < depth ? place(c, i, k + e) : -1;
        to[e] = T(at < 0 ? 0.0F : look<T>(c, at, (k + e) % c.channels));
      }
    }
  }

 private:
  __device__ std::int64_t place(const ConvLaunch& c, int i, int k) const {
    const int in_filter = k / c.channels;
    const std::int64_t row = top[i] + in_filter / c.kernel_w * c.dilation_h;
    const std::int64_t column = left[i] + in_filter % c.kernel_w * c.dilation_w;
    if (row < 0 || row >= c.height || column < 0 || column >= c.width) return -1;
    return image[i] + row * c.x_strides.row + column * c.x_strides.column + k % c.channels;
  }
};

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads) tensor_conv(const ConvLaunch c) {
  MF_DYNAMIC_SHARED(T, shared);
  const std::int64_t pixels = c.batch * c.rows * c.columns;
  const std::int64_t pixel0 = static_cast<std::int64_t>(blockIdx.x) * Shape::kRows;
  const std::int64_t filter0 = static_cast<std::int64_t>(blockIdx.y) * Shape::kColumns;
  const std::int64_t depth = static_cast<std::int64_t>(c.kernel_h) * c.kernel_w * c.channels;
  const Pixels<T, Shape> rows(c, pixel0);
  const auto fetch_x = [&](T* tile, std::int64_t k0) { rows.fetch(c, tile, static_cast<int>(k0)); };
  const auto fetch_w = [&](T* tile, std::int64_t k0) {
    fetch_tile<T, Tile<T, Shape::kColumns, false>, Shape::kThreads>(tile, static_cast<const T*>(c.w), depth, filter0,
                                                                    k0, c.filters, depth, c.wide_w);
  };
  T* const y = static_cast<T*>(c.y);
  gemm_block<T, Shape, false, false>(depth, shared, fetch_x, fetch_w, [&](int r, int f, float* sums) {
    const std::int64_t pixel = pixel0 + r, filter = filter0 + f;
    if (c.y_strides.channel == 1) return store_row(c.epilogue, sums, y, pixel, filter, pixels, c.filters, 0, c.wide_y);
    if (pixel >= pixels) return;
    const std::int64_t at = Window(c, pixel).y;
#pragma unroll 1
    for (int i = 0; i < 8 && filter + i < c.filters; ++i) {
      const std::int64_t place = at + (filter + i) * c.y_strides.channel;
      y[place] = T(finished<T>(c.epilogue, sums[i], filter + i, place));
    }
  });
}

/// The same in plain arithmetic, whichever way images lie.
template <class T>
__global__ void __launch_bounds__(kPlainThreads) plain_conv(const ConvLaunch c) {
  const T* const w = static_cast<const T*>(c.w);
  const std::int64_t pixels = c.batch * c.rows * c.columns, pixel0 = static_cast<std::int64_t>(blockIdx.x) * kPlainSide;
  const int filter0 = static_cast<int>(blockIdx.y) * kPlainSide, depth = c.kernel_h * c.kernel_w * c.channels;
  const auto fetch = [&](PlainSlice& a, PlainSlice& b, std::int64_t k0) {
    for (int e = static_cast<int>(threadIdx.x); e < kPlainSide * kPlainDepth; e += kPlainThreads) {
      const int d = e % kPlainDepth, r = e / kPlainDepth, k = static_cast<int>(k0) + d, in_filter = k / c.channels;
      const std::int64_t at =
          k < depth ? Window(c, pixel0 + r).at(c, in_filter / c.kernel_w, in_filter % c.kernel_w) : -1;
      a[d][r] = at < 0 ? 0 : look<T>(c, at + k % c.channels * c.x_strides.channel, k % c.channels);
      const std::int64_t filter = filter0 + r;
      b[d][r] = k < depth && filter < c.filters ? static_cast<float>(w[filter * depth + k]) : 0;
    }
  };
  plain_block(depth, fetch, [&](int r, int f, float sum) {
    const std::int64_t pixel = pixel0 + r;
    const int filter = filter0 + f;
    if (pixel >= pixels || filter >= c.filters) return;
    const std::int64_t at = Window(c, pixel).y + filter * c.y_strides.channel;
    static_cast<T*>(c.y)[at] = static_cast<T>(finished<T>(c.epilogue, sum, filter, at));
  });
}

/// One result for each thread; threads side by side have what lies side by side in y.
template <class T>
__global__ void __launch_bounds__(256) direct_conv(const ConvLaunch c) {
  const T* const w = static_cast<const T*>(c.w);
  const int per_group = c.channels / c.group, filters_per_group = c.filters / c.group;
  const std::int64_t area = c.rows * c.columns, all = c.batch * area * c.filters;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x; i < all;
       i += static_cast<std::int64_t>(gridDim.x) * 256) {
    const bool last = c.y_strides.channel == 1;
    const auto filter = static_cast<int>(last ? i % c.filters : i / area % c.filters);
    const Window window(c, last ? i / c.filters : i / (area * c.filters) * area + i % area);
    const int first = filter / filters_per_group * per_group;
    float sum = 0;
    for (int h = 0; h < c.kernel_h; ++h)
      for (int v = 0; v < c.kernel_w; ++v) {
        const std::int64_t at = window.at(c, h, v);
        if (at < 0) continue;
        const T* const weights = w + static_cast<std::int64_t>((h * c.kernel_w + v) * per_group) * c.filters + filter;
        for (int channel = 0; channel < per_group; ++channel)
          sum += look<T>(c, at + (first + channel) * c.x_strides.channel, first + channel) *
                 static_cast<float>(weights[static_cast<std::int64_t>(channel) * c.filters]);
      }
    const std::int64_t at = window.y + filter * c.y_strides.channel;
    static_cast<T*>(c.y)[at] = static_cast<T>(finished<T>(c.epilogue, sum, filter, at));
  }
}

dim3 grid_of(const ConvLaunch& c, std::int64_t rows, std::int64_t columns) {
  const std::int64_t pixels = c.batch * c.rows * c.columns;
  return {static_cast<unsigned>((pixels + rows - 1) / rows),
          static_cast<unsigned>((c.filters + columns - 1) / columns)};
}

template <class T, class Shape>
const char* start_tensor(const ConvLaunch& c, void* stream) {
  return launch(tensor_conv<T, Shape>,
                {grid_of(c, Shape::kRows, Shape::kColumns), Shape::kThreads, gemm_shared<T, Shape, false, false>(),
                 stream_of(stream)},
                c);
}

template <class T>
const char* start(ConvLaunch c, void* stream) {
  if (c.direct) {
    constexpr std::int64_t kMostBlocks = 1 << 20;
    const std::int64_t blocks = (c.batch * c.rows * c.columns * c.filters + 255) / 256;
    const auto grid = static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
    return launch(direct_conv<T>, {grid, 256, 0, stream_of(stream)}, c);
  }
  if (!c.tensor_cores)
    return launch(plain_conv<T>, {grid_of(c, kPlainSide, kPlainSide), kPlainThreads, 0, stream_of(stream)}, c);
  if constexpr (sizeof(T) == 2) {
    c.wide_x = c.channels % 8 == 0 && aligned(c.x, 16) && aligned(c.pre_scale, 16) && aligned(c.pre_shift, 16);
    c.wide_w = c.kernel_h * c.kernel_w * c.channels % 8 == 0 && aligned(c.w, 16);
    c.wide_y = c.filters % 8 == 0 && aligned(c.y, 16);
    return c.large ? start_tensor<T, LargeGemm>(c, stream) : start_tensor<T, SmallGemm>(c, stream);
  }
  return "tensor cores take 16-bit numbers";
}

}  // namespace

const char* start_conv(const ConvLaunch& c, void* stream) {
  return with_type(c.number, [&]<class T>(T) { return start<T>(c, stream); });
}

}  // namespace modelflow::cuda
