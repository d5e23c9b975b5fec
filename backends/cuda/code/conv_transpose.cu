// Transposed convolutions: the results that see the same pixels are a product over pixels that are gathered, whose rows
// are spread over y; on tensor cores, or in plain arithmetic.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/epilogue.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/device/transposed.h"

namespace modelflow::cuda {
namespace {

/// A tile of pixels or of weights, in chunks of 16 bytes; zeros where there is nothing.
template <class T, class Tile, class Lines, class Source>
__device__ inline void gather(T* to, const void* data, const ConvTransposeLaunch& c, const TransposedTile& tile,
                              const Source& source, std::int32_t k0, bool wide) {
  const T* const from = static_cast<const T*>(data);
  const int chunk = Lines::piece() * kChunk<T>;
  const std::int32_t k = k0 + chunk;
  if (wide) {
    const TransposedTap tap = k < tile.depth ? tile.tap(c, k) : TransposedTap{};
#pragma unroll
    for (int i = 0; i < Lines::kEach; ++i) {
      const std::int64_t at = k < tile.depth ? source.find(c, i, tap) : -1;
      copy_async_16(to + Lines::line(i) * Tile::kStride + chunk, from + (at < 0 ? 0 : at), at < 0 ? 0 : 16);
    }
    return;
  }
#pragma unroll 1
  for (int e = 0; e < kChunk<T>; ++e) {
    const TransposedTap tap = k + e < tile.depth ? tile.tap(c, k + e) : TransposedTap{};
#pragma unroll
    for (int i = 0; i < Lines::kEach; ++i) {
      const std::int64_t at = k + e < tile.depth ? source.find(c, i, tap) : -1;
      to[Lines::line(i) * Tile::kStride + chunk + e] = at < 0 ? T(0.0F) : from[at];
    }
  }
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads)
    tensor_conv_transpose(const __grid_constant__ ConvTransposeLaunch c,
                          const __grid_constant__ TransposedTiles tiles) {
  MF_DYNAMIC_SHARED(T, shared);
  auto* const y_rows = reinterpret_cast<std::int64_t*>(shared) + gemm_shared<T, Shape, false, false>() / 8;
  std::int64_t* const y_columns = y_rows + Shape::kRows;
  constexpr int kChunks = kDeep<T> / kChunk<T>;
  using Rows = SharedLines<Shape::kRows, kChunks, Shape::kThreads>;
  using Columns = SharedLines<Shape::kColumns, kChunks, Shape::kThreads>;
  const TransposedTile tile(c, tiles, Shape::kRows, Shape::kColumns);
  if (tile.rows == 0) return;
  const SeenPixels<Rows> pixels(c, tile, y_rows);
  const TurnedWeights<Columns> weights(c, tile, y_columns);
  const auto fetch_x = [&](T* to, std::int64_t k0) {
    gather<T, Tile<T, Shape::kRows, false>, Rows>(to, c.x, c, tile, pixels, static_cast<std::int32_t>(k0), c.wide_x);
  };
  const auto fetch_w = [&](T* to, std::int64_t k0) {
    gather<T, Tile<T, Shape::kColumns, false>, Columns>(to, c.w, c, tile, weights, static_cast<std::int32_t>(k0),
                                                        c.wide_w);
  };
  T* const y = static_cast<T*>(c.y);
  gemm_block<T, Shape, false, false>(tile.depth, shared, fetch_x, fetch_w, [&](int r, int f, float* sums) {
    const std::int64_t row = y_rows[r];
    const std::int32_t column = tile.column0 + f;
    if (row < 0 || column >= tile.columns) return;
    if (c.wide_y) {  // eight filters of one place
      const std::int32_t filter = column % c.filters;
      return store_row(c.epilogue, sums, y, 0, filter, 1, c.filters, row + y_columns[f] - filter, true);
    }
#pragma unroll 1
    for (int i = 0; i < 8 && column + i < tile.columns; ++i) {
      const std::int64_t at = row + y_columns[f + i];
      y[at] = T(finished<T>(c.epilogue, sums[i], (column + i) % c.filters, at));
    }
  });
}

template <class T>
__global__ void __launch_bounds__(kPlainThreads)
    plain_conv_transpose(const __grid_constant__ ConvTransposeLaunch c, const __grid_constant__ TransposedTiles tiles) {
  __shared__ std::int64_t y_rows[kPlainSide], y_columns[kPlainSide];
  using Lines = SharedLines<kPlainSide, kPlainDepth, kPlainThreads>;
  const TransposedTile tile(c, tiles, kPlainSide, kPlainSide);
  if (tile.rows == 0) return;
  const T *const x = static_cast<const T*>(c.x), *const w = static_cast<const T*>(c.w);
  const SeenPixels<Lines> pixels(c, tile, y_rows);
  const TurnedWeights<Lines> weights(c, tile, y_columns);
  __syncthreads();  // a product without depth does not wait
  const auto fetch = [&](PlainSlice& a, PlainSlice& b, std::int64_t k0) {
    const std::int32_t d = Lines::piece(), k = static_cast<std::int32_t>(k0) + d;
    const TransposedTap tap = k < tile.depth ? tile.tap(c, k) : TransposedTap{};
#pragma unroll
    for (int i = 0; i < Lines::kEach; ++i) {
      const std::int64_t pixel = k < tile.depth ? pixels.find(c, i, tap) : -1;
      const std::int64_t weight = k < tile.depth ? weights.find(c, i, tap) : -1;
      a[d][Lines::line(i)] = pixel < 0 ? 0 : static_cast<float>(x[pixel]);
      b[d][Lines::line(i)] = weight < 0 ? 0 : static_cast<float>(w[weight]);
    }
  };
  plain_block(tile.depth, fetch, [&](int r, int f, float sum) {
    const std::int32_t column = tile.column0 + f;
    if (y_rows[r] < 0 || column >= tile.columns) return;
    const std::int64_t at = y_rows[r] + y_columns[f];
    static_cast<T*>(c.y)[at] = static_cast<T>(finished<T>(c.epilogue, sum, column % c.filters, at));
  });
}

template <class Kernel>
const char* start_tiles(Kernel kernel, const ConvTransposeLaunch& c, int rows, int columns, int threads,
                        unsigned shared, void* stream) {
  const TransposedTiles tiles = tiles_of(c, rows, columns);
  const LargeGrid grid = {tiles.first[parts_of(c)], 1, 1};
  return launch(kernel, grid.launch(static_cast<unsigned>(threads), shared, stream), c, tiles);
}

template <class T, class Shape>
const char* start_tensor(const ConvTransposeLaunch& c, void* stream) {
  return start_tiles(tensor_conv_transpose<T, Shape>, c, Shape::kRows, Shape::kColumns, Shape::kThreads,
                     gemm_shared<T, Shape, false, false>() + 8 * (Shape::kRows + Shape::kColumns), stream);
}

template <class T>
const char* start(ConvTransposeLaunch c, void* stream) {
  if (!c.tensor_cores) return start_tiles(plain_conv_transpose<T>, c, kPlainSide, kPlainSide, kPlainThreads, 0, stream);
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
