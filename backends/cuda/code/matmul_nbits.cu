// Products by weights of 4 and 8 bits: few rows in registers, weights read once; more on tensor cores, in tiles of
// weights that become floats in shared memory; float32 and whatever an old device has in plain arithmetic.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/epilogue.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/device/rows.h"

namespace modelflow::cuda {
namespace {

constexpr int kFewRows = 4;              // of a
constexpr int kWarps = 4, kColumns = 4;  // of a block, of a warp
constexpr int kPiece = 16;               // numbers that a lane takes at once
constexpr int kBlockColumns = kWarps * kColumns;

/// Tiles of so many rows and columns of y.
__host__ __device__ LargeGrid grid_of(const MatMulNBitsLaunch& g, std::int64_t rows, std::int64_t columns) {
  return {ceil_div(g.m, rows), ceil_div(g.n, columns), 1};
}

/// N numbers of a row of b from `at` on, less the step that stands for 0. They lie in as many bytes as are moved at
/// once.
template <int bits, int N>
__device__ inline void read_steps(const std::uint8_t* b, std::int64_t at, float (&to)[N]) {
  constexpr int kBytes = N * bits / 8;
  const auto pack = *reinterpret_cast<const Pack<std::uint8_t, kBytes>*>(b + at * bits / 8);
  for (int i = 0; i < N; ++i) {
    const int step = bits == 8 ? pack.of[i] : pack.of[i / 2] >> (i % 2 * 4) & 15;
    to[i] = static_cast<float>(step - (1 << (bits - 1)));
  }
}

/// N numbers of a row of a, 16 bytes at a time.
template <class T, int N>
__device__ inline void read_row(const T* from, float (&to)[N]) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < N; i += kAtOnce) {
    float part[kAtOnce];
    read<T, kAtOnce>(from + i, part);
    for (int j = 0; j < kAtOnce; ++j) to[i + j] = part[j];
  }
}

template <class T>
__device__ inline float scale_at(const MatMulNBitsLaunch& g, std::int64_t column, std::int64_t row) {
  return static_cast<float>(static_cast<const T*>(g.scale)[(column * g.k + row) / g.block]);
}

/// A warp sums four columns of one row of y, its lanes share the depth.
template <class T, int bits>
__global__ void __launch_bounds__(32 * kWarps) few_rows(const MatMulNBitsLaunch g) {
  const LargeGrid here = grid_of(g, 1, kBlockColumns).here();
  if (here.z > 0) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first = here.y * kBlockColumns + warp * kColumns;
  const T* const a = static_cast<const T*>(g.a) + here.x * g.k;
  float sums[kColumns] = {};
  for (std::int64_t at = lane * kPiece; at < g.k; at += 32 * kPiece) {
    float row[kPiece];
    read_row(a + at, row);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      if (first + j >= g.n) break;
      float steps[kPiece], sum = 0;
      read_steps<bits>(g.b, (first + j) * g.k + at, steps);
#pragma unroll
      for (int i = 0; i < kPiece; ++i) sum += row[i] * steps[i];
      sums[j] += sum * scale_at<T>(g, first + j, at);
    }
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const float sum = warp_reduce(sums[j], Sum());
    const std::int64_t y = here.x * g.n + first + j;
    if (lane == 0 && first + j < g.n)
      static_cast<T*>(g.y)[y] = static_cast<T>(finished<T>(g.epilogue, sum, first + j, y));
  }
}

template <class T, class Shape, int bits>
__global__ void __launch_bounds__(Shape::kThreads) tensor_product(const MatMulNBitsLaunch g) {
  MF_DYNAMIC_SHARED(T, shared);
  const LargeGrid here = grid_of(g, Shape::kRows, Shape::kColumns).here();
  if (here.z > 0) return;
  const std::int64_t row0 = here.x * Shape::kRows, column0 = here.y * Shape::kColumns;
  const auto fetch_a = [&](T* tile, std::int64_t k0) {
    fetch_tile<T, Tile<T, Shape::kRows, false>, Shape::kThreads>(tile, static_cast<const T*>(g.a), g.k, row0, k0, g.m,
                                                                 g.k, true);
  };
  // All see the numbers two barriers later, when their turn comes.
  const auto fetch_b = [&](T* tile, std::int64_t k0) {
    using TileB = Tile<T, Shape::kColumns, false>;
    constexpr int kChunks = TileB::kColumns / 8;
    for (int i = static_cast<int>(threadIdx.x); i < TileB::kRows * kChunks; i += Shape::kThreads) {
      const std::int64_t column = column0 + i / kChunks, at = k0 + i % kChunks * 8;
      float w[8] = {};
      if (column < g.n) {
        read_steps<bits>(g.b, column * g.k + at, w);
        const float scale = scale_at<T>(g, column, at);
        for (float& number : w) number *= scale;
      }
      write<T, 8>(w, tile + i / kChunks * TileB::kStride + i % kChunks * 8);
    }
  };
  gemm_block<T, Shape, false, false>(g.k, shared, fetch_a, fetch_b, [&](int r, int c, float* sums) {
    store_row(g.epilogue, sums, static_cast<T*>(g.y), row0 + r, column0 + c, g.m, g.n, 0, g.wide_y);
  });
}

template <class T, int bits>
__global__ void __launch_bounds__(kPlainThreads) plain_product(const MatMulNBitsLaunch g) {
  const LargeGrid here = grid_of(g, kPlainSide, kPlainSide).here();
  if (here.z > 0) return;
  const std::int64_t row0 = here.x * kPlainSide, column0 = here.y * kPlainSide;
  const auto fetch = [&](PlainSlice& a, PlainSlice& b, std::int64_t k0) {
    for (int i = static_cast<int>(threadIdx.x); i < kPlainSide * kPlainDepth; i += kPlainThreads) {
      const int d = i % kPlainDepth, r = i / kPlainDepth;
      const std::int64_t row = row0 + r, column = column0 + r;
      a[d][r] = row < g.m ? static_cast<float>(static_cast<const T*>(g.a)[row * g.k + k0 + d]) : 0;
      const std::int64_t at = column * g.k + k0 + d;
      const int byte = column < g.n ? g.b[at * bits / 8] : 0, step = bits == 8 ? byte : byte >> (at % 2 * 4) & 15;
      b[d][r] = column < g.n ? static_cast<float>(step - (1 << (bits - 1))) * scale_at<T>(g, column, k0 + d) : 0;
    }
  };
  plain_block(g.k, fetch, [&](int r, int c, float sum) {
    const std::int64_t row = row0 + r, column = column0 + c, y = row * g.n + column;
    if (row < g.m && column < g.n) static_cast<T*>(g.y)[y] = static_cast<T>(finished<T>(g.epilogue, sum, column, y));
  });
}

template <class T, class Shape, int bits>
const char* start_tensor(const MatMulNBitsLaunch& g, void* stream) {
  return launch(
      tensor_product<T, Shape, bits>,
      grid_of(g, Shape::kRows, Shape::kColumns).launch(Shape::kThreads, gemm_shared<T, Shape, false, false>(), stream),
      g);
}

template <class T, int bits>
const char* start(MatMulNBitsLaunch g, void* stream) {
  // k is a multiple of 32, so that all rows of a and b lie as their first ones do.
  const bool wide = aligned(g.a, 16) && aligned(g.b, 16);
  if (wide && g.m <= kFewRows)
    return launch(few_rows<T, bits>, grid_of(g, 1, kBlockColumns).launch(32 * kWarps, 0, stream), g);
  if constexpr (sizeof(T) == 2) {
    g.wide_y = g.n % 8 == 0 && aligned(g.y, 16);
    if (wide && g.tensor_cores)
      return g.large ? start_tensor<T, LargeGemm, bits>(g, stream) : start_tensor<T, SmallGemm, bits>(g, stream);
  }
  return launch(plain_product<T, bits>, grid_of(g, kPlainSide, kPlainSide).launch(kPlainThreads, 0, stream), g);
}

}  // namespace

const char* start_matmul_nbits(const MatMulNBitsLaunch& g, void* stream) {
  return with_type(g.number, [&]<class T>(T) { return g.bits == 8 ? start<T, 8>(g, stream) : start<T, 4>(g, stream); });
}

}  // namespace modelflow::cuda
