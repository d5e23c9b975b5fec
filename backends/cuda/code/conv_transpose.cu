// Transposed convolutions whose windows do not overlap: one product, each row of which is spread over a window of y.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/epilogue.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/device/rows.h"

namespace modelflow::cuda {
namespace {

__host__ __device__ inline std::int64_t columns_of(const ConvTransposeLaunch& c) {
  return static_cast<std::int64_t>(c.kernel_d) * c.kernel_h * c.kernel_w * c.filters;
}

/// Where in y the result of this pixel of x is that is computed in this column: [plane, row, column, filter] of the
/// window. Planes of all images count on.
__device__ inline std::int64_t spread(const ConvTransposeLaunch& c, std::int64_t pixel, std::int64_t column) {
  const std::int64_t in_window = column / c.filters, line = in_window / c.kernel_w, from = pixel / c.width;
  const std::int64_t plane = from / c.height * c.kernel_d + line / c.kernel_h;
  const std::int64_t row = (plane * c.height + from % c.height) * c.kernel_h + line % c.kernel_h;
  const std::int64_t across = (row * c.width + pixel % c.width) * c.kernel_w + in_window % c.kernel_w;
  return across * c.filters + column % c.filters;
}

template <class T>
__device__ float finished_at(const ConvTransposeLaunch& c, float sum, std::int64_t column, std::int64_t at) {
  return finished<T>(c.epilogue, sum, column % c.filters, at);
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads) tensor_conv_transpose(const ConvTransposeLaunch c) {
  MF_DYNAMIC_SHARED(T, shared);
  using TileX = Tile<T, Shape::kRows, false>;
  using TileW = Tile<T, Shape::kColumns, false>;
  const std::int64_t columns = columns_of(c);
  const std::int64_t pixel0 = static_cast<std::int64_t>(blockIdx.x) * Shape::kRows;
  const std::int64_t column0 = static_cast<std::int64_t>(blockIdx.y) * Shape::kColumns;
  const auto fetch_x = [&](T* tile, std::int64_t k0) {
    fetch_tile<T, TileX, Shape::kThreads>(tile, static_cast<const T*>(c.x), c.channels, pixel0, k0, c.pixels,
                                          c.channels, c.wide_x);
  };
  const auto fetch_w = [&](T* tile, std::int64_t k0) {
    fetch_tile<T, TileW, Shape::kThreads>(tile, static_cast<const T*>(c.w), c.channels, column0, k0, columns,
                                          c.channels, c.wide_w);
  };
  T* const y = static_cast<T*>(c.y);
  gemm_block<T, Shape, false, false>(c.channels, shared, fetch_x, fetch_w, [&](int r, int f, float* sums) {
    const std::int64_t pixel = pixel0 + r, column = column0 + f;
    if (pixel >= c.pixels) return;
    const int here = columns - column < 8 ? static_cast<int>(columns - column) : 8;
    if (c.wide_y && here > 0) {  // eight filters of one place
      const std::int64_t filter = column % c.filters;
      return store_row(c.epilogue, sums, y, 0, filter, 1, c.filters, spread(c, pixel, column) - filter, true);
    }
#pragma unroll 1
    for (int i = 0; i < here; ++i) {
      const std::int64_t at = spread(c, pixel, column + i);
      y[at] = T(finished_at<T>(c, sums[i], column + i, at));
    }
  });
}

template <class T>
__global__ void __launch_bounds__(kPlainThreads) plain_conv_transpose(const ConvTransposeLaunch c) {
  const T *const x = static_cast<const T*>(c.x), *const w = static_cast<const T*>(c.w);
  const std::int64_t columns = columns_of(c), depth = c.channels;
  const std::int64_t pixel0 = static_cast<std::int64_t>(blockIdx.x) * kPlainSide;
  const std::int64_t column0 = static_cast<std::int64_t>(blockIdx.y) * kPlainSide;
  const auto fetch = [&](PlainSlice& a, PlainSlice& b, std::int64_t k0) {
    for (int e = static_cast<int>(threadIdx.x); e < kPlainSide * kPlainDepth; e += kPlainThreads) {
      const int d = e % kPlainDepth, r = e / kPlainDepth;
      const std::int64_t k = k0 + d, pixel = pixel0 + r, column = column0 + r;
      a[d][r] = k < depth && pixel < c.pixels ? static_cast<float>(x[pixel * depth + k]) : 0;
      b[d][r] = k < depth && column < columns ? static_cast<float>(w[column * depth + k]) : 0;
    }
  };
  plain_block(depth, fetch, [&](int r, int f, float sum) {
    const std::int64_t pixel = pixel0 + r, column = column0 + f;
    if (pixel >= c.pixels || column >= columns) return;
    const std::int64_t at = spread(c, pixel, column);
    static_cast<T*>(c.y)[at] = static_cast<T>(finished_at<T>(c, sum, column, at));
  });
}

dim3 grid_of(const ConvTransposeLaunch& c, std::int64_t rows, std::int64_t columns) {
  return {static_cast<unsigned>(ceil_div(c.pixels, rows)), static_cast<unsigned>(ceil_div(columns_of(c), columns))};
}

template <class T, class Shape>
const char* start_tensor(const ConvTransposeLaunch& c, void* stream) {
  return launch(tensor_conv_transpose<T, Shape>,
                {grid_of(c, Shape::kRows, Shape::kColumns), Shape::kThreads, gemm_shared<T, Shape, false, false>(),
                 stream_of(stream)},
                c);
}

template <class T>
const char* start(ConvTransposeLaunch c, void* stream) {
  if (!c.tensor_cores)
    return launch(plain_conv_transpose<T>, {grid_of(c, kPlainSide, kPlainSide), kPlainThreads, 0, stream_of(stream)},
                  c);
  if constexpr (sizeof(T) == 2) {
    c.wide_x = c.channels % 8 == 0 && aligned(c.x, 16);
    c.wide_w = c.channels % 8 == 0 && aligned(c.w, 16);
    c.wide_y = c.filters % 8 == 0 && aligned(c.y, 16);
    return c.large ? start_tensor<T, LargeGemm>(c, stream) : start_tensor<T, SmallGemm>(c, stream);
  }
  return "tensor cores take 16-bit numbers";
}

}  // namespace

const char* start_conv_transpose(const ConvTransposeLaunch& c, void* stream) {
  return with_type(c.number, [&]<class T>(T) { return start<T>(c, stream); });
}

}  // namespace modelflow::cuda
