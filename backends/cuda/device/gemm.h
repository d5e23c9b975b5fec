// The matrix product of a block on tensor cores: tiles along k flow through shared memory in three stages, each warp
// sums its part in registers. Who calls it says how tiles of A and B are fetched and what becomes of the sums. Numbers
// have 16 bits, or 8: bytes of A have no sign, those of B have one (both are std::uint8_t here), and sums are exact.
#pragma once

#include "backends/cuda/device/tensor_core.h"

namespace modelflow::cuda {

/// Numbers that are moved at once, and how many along k a tile has: 64 bytes in every type.
template <class T>
inline constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
template <class T>
inline constexpr int kDeep = 4 * kChunk<T>;

/// A block makes kRows x kColumns, each of its warps kWarpRows x kWarpColumns.
template <int rows, int columns, int warp_rows, int warp_columns>
struct GemmShape {
  static constexpr int kRows = rows, kColumns = columns, kWarpRows = warp_rows, kWarpColumns = warp_columns;
  static constexpr int kStages = 3;
  static constexpr int kWarps = rows / warp_rows * (columns / warp_columns), kThreads = 32 * kWarps;
};
using LargeGemm = GemmShape<128, 128, 64, 32>;
using SmallGemm = GemmShape<64, 64, 32, 32>;

/// A tile as it lies in shared memory: k is the slower axis where `k_first` says so, else the faster one. 16 bytes more
/// per row: no two rows of a fragment in one bank.
template <class T, int extent, bool k_first>
struct Tile {
  static constexpr int kRows = k_first ? kDeep<T> : extent, kColumns = k_first ? extent : kDeep<T>;
  static constexpr int kStride = kColumns + kChunk<T>;
  static constexpr int kElements = kRows * kStride;
};

/// Rows x Columns numbers of a matrix into shared memory, zeros outside of it; in the background where it may be read
/// 16 bytes at a time (`wide`).
template <class T, class Tile, int threads>
__device__ inline void fetch_tile(T* to, const T* from, std::int64_t stride, std::int64_t row0, std::int64_t column0,
                                  std::int64_t rows, std::int64_t columns, bool wide) {
  constexpr int kOnce = kChunk<T>, kChunks = Tile::kColumns / kOnce;
  for (int i = static_cast<int>(threadIdx.x); i < Tile::kRows * kChunks; i += threads) {
    const std::int64_t row = row0 + i / kChunks, column = column0 + i % kChunks * kOnce;
    T* const at = to + i / kChunks * Tile::kStride + i % kChunks * kOnce;
    const std::int64_t left = row < rows ? columns - column : 0;
    const int here = left < 0 ? 0 : left > kOnce ? kOnce : static_cast<int>(left);
    const T* const source = here > 0 ? from + row * stride + column : from;
    if (wide) {
      copy_async_16(at, source, here * static_cast<int>(sizeof(T)));
    } else {
      for (int k = 0; k < kOnce; ++k) at[k] = k < here ? source[k] : T(0.0F);
    }
  }
}

/// A tile of `extent` lines of a matrix from `line0` on, and of k from `k0` on, both of which end at `lines` and
/// `depth`.
template <class T, int extent, bool k_first, int threads>
__device__ inline void fetch_lines(T* tile, const T* from, std::int64_t stride, std::int64_t line0, std::int64_t k0,
                                   std::int64_t lines, std::int64_t depth, bool wide) {
  using Here = Tile<T, extent, k_first>;
  if constexpr (k_first) {
    fetch_tile<T, Here, threads>(tile, from, stride, k0, line0, depth, lines, wide);
  } else {
    fetch_tile<T, Here, threads>(tile, from, stride, line0, k0, lines, depth, wide);
  }
}

/// 16 rows of A that begin at `row`, 32 bytes of each, from a tile.
template <class T, class Tile, bool k_first>
__device__ inline void fragment_a(std::uint32_t (&a)[4], const T* tile, int row, int k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (k_first) {
    ldmatrix_x4<true>(a, tile + (k + lane % 8 + lane / 16 * 8) * Tile::kStride + row + lane / 8 % 2 * 8);
  } else {
    ldmatrix_x4<false>(a, tile + (row + lane % 16) * Tile::kStride + k + lane / 16 * kChunk<T>);
  }
}

/// 16 columns of B that begin at `column`, 32 bytes of each: two fragments of 8 columns.
template <class T, class Tile, bool k_first>
__device__ inline void fragments_b(std::uint32_t (&b)[4], const T* tile, int column, int k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (k_first) {
    ldmatrix_x4<true>(b, tile + (k + lane % 8 + lane / 8 % 2 * 8) * Tile::kStride + column + lane / 16 * 8);
  } else {
    ldmatrix_x4<false>(b, tile + (column + lane % 8 + lane / 16 * 8) * Tile::kStride + k + lane / 8 % 2 * kChunk<T>);
  }
}

/// fetch_a(tile, k0) and fetch_b(tile, k0) fill tiles of kDeep along k, which start at k0; a_k_first and b_k_first say
/// how those lie. use(row, column, value) gets every sum of the block once, by place in it.
template <class T, class Shape, bool a_k_first, bool b_k_first, class FetchA, class FetchB, class Use>
__device__ inline void gemm_block(std::int64_t k, T* shared, FetchA fetch_a, FetchB fetch_b, Use use) {
  using TileA = Tile<T, Shape::kRows, a_k_first>;
  using TileB = Tile<T, Shape::kColumns, b_k_first>;
  constexpr int kMi = Shape::kWarpRows / 16, kNi = Shape::kWarpColumns / 8;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row0 = warp / (Shape::kColumns / Shape::kWarpColumns) * Shape::kWarpRows;
  const int column0 = warp % (Shape::kColumns / Shape::kWarpColumns) * Shape::kWarpColumns;
  const auto tile_a = [&](std::int64_t step) { return shared + step % Shape::kStages * TileA::kElements; };
  const auto tile_b = [&](std::int64_t step) {
    return shared + Shape::kStages * TileA::kElements + step % Shape::kStages * TileB::kElements;
  };
  const std::int64_t steps = (k + kDeep<T> - 1) / kDeep<T>;
  const auto fetch = [&](std::int64_t step) {
    if (step < steps) {
      fetch_a(tile_a(step), step * kDeep<T>);
      fetch_b(tile_b(step), step * kDeep<T>);
    }
    copy_async_commit();  // an empty group keeps the count
  };
  SumOf<T> sums[kMi][kNi][4] = {};
  for (int stage = 0; stage + 1 < Shape::kStages; ++stage) fetch(stage);
  for (std::int64_t step = 0; step < steps; ++step) {
    copy_async_wait<Shape::kStages - 2>();
    __syncthreads();  // all see this step's tiles, and nobody reads those of the step before
    fetch(step + Shape::kStages - 1);
    const T *const a_now = tile_a(step), *const b_now = tile_b(step);
#pragma unroll
    for (int kk = 0; kk < kDeep<T>; kk += 2 * kChunk<T>) {
      std::uint32_t a[kMi][4];
#pragma unroll
      for (int i = 0; i < kMi; ++i) fragment_a<T, TileA, a_k_first>(a[i], a_now, row0 + 16 * i, kk);
#pragma unroll
      for (int j = 0; j < kNi; j += 2) {
        std::uint32_t b[4];
        fragments_b<T, TileB, b_k_first>(b, b_now, column0 + 8 * j, kk);
        const std::uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
#pragma unroll
        for (int i = 0; i < kMi; ++i) {
          mma(sums[i][j], a[i], left, T());
          mma(sums[i][j + 1], a[i], right, T());
        }
      }
    }
  }
  // By way of shared memory: rows are whole there, and what follows is written once and not for each register.
  __syncthreads();
  auto* const staged = reinterpret_cast<SumOf<T>*>(shared);
#pragma unroll
  for (int i = 0; i < kMi; ++i)
#pragma unroll
    for (int j = 0; j < kNi; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r)
        staged[(row0 + 16 * i + lane / 4 + 8 * (r / 2)) * Shape::kColumns + column0 + 8 * j + lane % 4 * 2 + r % 2] =
            sums[i][j][r];
  __syncthreads();
#pragma unroll 1
  for (int e = static_cast<int>(threadIdx.x) * 8; e < Shape::kRows * Shape::kColumns; e += 8 * Shape::kThreads)
    use(e / Shape::kColumns, e % Shape::kColumns, staged + e);
}

/// Bytes of shared memory that gemm_block takes: for tiles, then for sums.
template <class T, class Shape, bool a_k_first, bool b_k_first>
constexpr unsigned gemm_shared() {
  constexpr int kTiles = Tile<T, Shape::kRows, a_k_first>::kElements + Tile<T, Shape::kColumns, b_k_first>::kElements;
  constexpr auto kFetched = static_cast<unsigned>(Shape::kStages * kTiles * static_cast<int>(sizeof(T)));
  constexpr auto kSums = static_cast<unsigned>(Shape::kRows * Shape::kColumns * static_cast<int>(sizeof(SumOf<T>)));
  return kFetched > kSums ? kFetched : kSums;
}

}  // namespace modelflow::cuda
