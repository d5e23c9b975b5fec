// Convolutions: as products over gathered pixels, on tensor cores or in plain arithmetic, and each result by itself
// where groups leave little to share.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/epilogue.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/device/windows.h"

namespace modelflow::cuda {
namespace {

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads) tensor_conv(const ConvLaunch c) {
  MF_DYNAMIC_SHARED(T, shared);
  const std::int64_t pixels = pixels_of(c);
  const std::int64_t pixel0 = static_cast<std::int64_t>(blockIdx.x) * Shape::kRows;
  const std::int64_t filter0 = static_cast<std::int64_t>(blockIdx.y) * Shape::kColumns;
  const std::int64_t depth = static_cast<std::int64_t>(places_of(c)) * c.channels;
  const Pixels<T, Shape> rows(c, pixel0);
  const auto fetch_x = [&](T* tile, std::int64_t k0) { rows.fetch(c, tile, static_cast<int>(k0)); };
  const auto fetch_w = [&](T* tile, std::int64_t k0) {
    fetch_tile<T, Tile<T, Shape::kColumns, false>, Shape::kThreads>(tile, static_cast<const T*>(c.w), depth, filter0,
                                                                    k0, c.filters, depth, c.wide_w);
  };
  T* const y = static_cast<T*>(c.y);
  gemm_block<T, Shape, false, false>(depth, shared, fetch_x, fetch_w, [&](int r, int f, float* sums) {
    const std::int64_t pixel = pixel0 + r, filter = filter0 + f;
    if (c.y_channel == 1) return store_row(c.epilogue, sums, y, pixel, filter, pixels, c.filters, 0, c.wide_y);
    if (pixel >= pixels) return;
    const std::int64_t at = Window(c, pixel).y;
#pragma unroll 1
    for (int i = 0; i < 8 && filter + i < c.filters; ++i) {
      const std::int64_t place = at + (filter + i) * c.y_channel;
      y[place] = T(finished<T>(c.epilogue, sums[i], filter + i, place));
    }
  });
}

/// The same in plain arithmetic, whichever way images lie.
template <class T>
__global__ void __launch_bounds__(kPlainThreads) plain_conv(const ConvLaunch c) {
  const T* const w = static_cast<const T*>(c.w);
  const std::int64_t pixels = pixels_of(c), pixel0 = static_cast<std::int64_t>(blockIdx.x) * kPlainSide;
  const int filter0 = static_cast<int>(blockIdx.y) * kPlainSide, depth = places_of(c) * c.channels;
  const auto fetch = [&](PlainSlice& a, PlainSlice& b, std::int64_t k0) {
    const int thread = static_cast<int>(threadIdx.x), d = thread % kPlainDepth, k = static_cast<int>(k0) + d;
    const int place = k / c.channels, channel = k - place * c.channels;
    const Tap tap = tap_of(c, place);
    for (int r = thread / kPlainDepth; r < kPlainSide; r += kPlainThreads / kPlainDepth) {
      const std::int64_t at = k < depth ? Window(c, pixel0 + r).at(c, tap) : -1;
      a[d][r] = at < 0 ? 0 : look<T>(c, at + channel * c.x_channel, channel);
      const std::int64_t filter = filter0 + r;
      b[d][r] = k < depth && filter < c.filters ? static_cast<float>(w[filter * depth + k]) : 0;
    }
  };
  plain_block(depth, fetch, [&](int r, int f, float sum) {
    const std::int64_t pixel = pixel0 + r;
    const int filter = filter0 + f;
    if (pixel >= pixels || filter >= c.filters) return;
    const std::int64_t at = Window(c, pixel).y + filter * c.y_channel;
    static_cast<T*>(c.y)[at] = static_cast<T>(finished<T>(c.epilogue, sum, filter, at));
  });
}

/// One result for each thread; threads side by side have what lies side by side in y.
template <class T>
__global__ void __launch_bounds__(256) direct_conv(const ConvLaunch c) {
  const T* const w = static_cast<const T*>(c.w);
  const int per_group = c.channels / c.group, filters_per_group = c.filters / c.group;
  const std::int64_t area = area_of(c), all = c.batch * area * c.filters;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x; i < all;
       i += static_cast<std::int64_t>(gridDim.x) * 256) {
    const bool last = c.y_channel == 1;
    const auto filter = static_cast<int>(last ? i % c.filters : i / area % c.filters);
    const Window window(c, last ? i / c.filters : i / (area * c.filters) * area + i % area);
    const int first = filter / filters_per_group * per_group;
    float sum = 0;
    const T* weights = w + filter;
    for (int d = 0; d < c.axis[0].kernel; ++d)
      for (int h = 0; h < c.axis[1].kernel; ++h)
        for (int v = 0; v < c.axis[2].kernel; ++v, weights += static_cast<std::int64_t>(per_group) * c.filters) {
          const std::int64_t at = window.at(c, {d, h, v});
          if (at < 0) continue;
          for (int channel = 0; channel < per_group; ++channel)
            sum += look<T>(c, at + (first + channel) * c.x_channel, first + channel) *
                   static_cast<float>(weights[static_cast<std::int64_t>(channel) * c.filters]);
        }
    static_cast<T*>(c.y)[i] = static_cast<T>(finished<T>(c.epilogue, sum, filter, i));
  }
}

dim3 grid_of(const ConvLaunch& c, std::int64_t rows, std::int64_t columns) {
  const std::int64_t pixels = pixels_of(c);
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
    const std::int64_t blocks = (pixels_of(c) * c.filters + 255) / 256;
    const auto grid = static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
    return launch(direct_conv<T>, {grid, 256, 0, stream_of(stream)}, c);
  }
  if (!c.tensor_cores)
    return launch(plain_conv<T>, {grid_of(c, kPlainSide, kPlainSide), kPlainThreads, 0, stream_of(stream)}, c);
  if constexpr (sizeof(T) == 2) {
    const bool scales = aligned(c.pre_scale, 16) && aligned(c.pre_shift, 16);
    c.step_x = c.channels % 8 == 0 && aligned(c.x, 16) && scales ? 8 : 1;
    c.wide_w = places_of(c) * c.channels % 8 == 0 && aligned(c.w, 16);
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
