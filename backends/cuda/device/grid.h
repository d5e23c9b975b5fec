// How work is shared out to blocks: elements to threads, rows to warps or blocks, columns side by side to warps.
#pragma once

#include "backends/cuda/device/rows.h"
#include "backends/cuda/launches/shared_memory.h"

namespace modelflow::cuda {

__host__ __device__ inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline unsigned blocks_for(std::int64_t units, std::int64_t per_block) {
  const std::int64_t blocks = ceil_div(units, per_block);
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ inline std::int64_t block_of_grid() { return std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x; }

/// A grid of any three extents: CUDA's own end at 65535 along y and z. The blocks lie one behind the other, x the
/// fastest; those behind the last one have nothing to do.
struct LargeGrid {
  std::int64_t x, y, z;

  Launch launch(unsigned threads, unsigned shared, void* stream) const {
    const std::int64_t all = x * y * z, along = all < kMostBlocksAlong ? all : kMostBlocksAlong;
    const dim3 grid(static_cast<unsigned>(along), static_cast<unsigned>(along == 0 ? 1 : ceil_div(all, along)));
    return {grid, threads, shared, stream_of(stream)};
  }
  /// Where this block lies; the same for all of its threads.
  __device__ LargeGrid here() const {
    const std::int64_t block = block_of_grid(), row = block / x;
    return {block - row * x, row % y, row / y};
  }
};

/// One thread for each of these units: for (i = thread_of_grid(); i < units; i += threads_of_grid()).
inline Launch over_units(std::int64_t units, void* stream, unsigned shared = 0) {
  constexpr unsigned kThreads = 256;
  return {blocks_for(units, kThreads), kThreads, shared, stream_of(stream)};
}
__device__ inline std::int64_t thread_of_grid() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t threads_of_grid() { return std::int64_t{gridDim.x} * blockDim.x; }

/// A block for each row of so many pieces (elements that a thread moves at once); four short ones share a block, a warp
/// for each: for (r = first_row(); r < rows; r += rows_of_grid()). Threads of one row meet in block_reduce.
inline Launch over_rows(std::int64_t rows, std::int64_t pieces, void* stream) {
  constexpr std::int64_t kWarp = 32, kPieces = 4, kMost = 256;  // of a warp, of a thread, of a row
  if (pieces <= kWarp * kPieces) return {blocks_for(rows, 4), {32, 4}, 0, stream_of(stream)};
  const std::int64_t threads = ceil_div(pieces, kWarp * kPieces) * kWarp;
  return {blocks_for(rows, 1), static_cast<unsigned>(threads < kMost ? threads : kMost), 0, stream_of(stream)};
}
__device__ inline std::int64_t first_row() { return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }
__device__ inline std::int64_t rows_of_grid() { return std::int64_t{gridDim.x} * blockDim.y; }

/// What a thread keeps in the shared memory of its block, N floats at a time: no other one reads them, and a warp's lie
/// side by side.
template <int N>
struct Kept {
  float* mine;
  int step;
  __device__ explicit Kept(float* shared)
      : mine(shared + threadIdx.y * blockDim.x + threadIdx.x), step(static_cast<int>(blockDim.x * blockDim.y)) {}
  __device__ void put(int slot, const float (&v)[N]) {
    for (int k = 0; k < N; ++k) mine[(slot * N + k) * step] = v[k];
  }
  __device__ void get(int slot, float (&v)[N]) const {
    for (int k = 0; k < N; ++k) v[k] = mine[(slot * N + k) * step];
  }
};
inline unsigned kept_bytes(const Launch& how, std::int64_t slots, int n) {
  return static_cast<unsigned>(slots * n * how.block.x * how.block.y * static_cast<std::int64_t>(sizeof(float)));
}

/// 32 columns side by side, whose elements eight warps share. A unit of a grid is such a stripe; rows lie outside.
struct Columns {
  std::int64_t inner;
  __device__ std::int64_t stripes() const { return (inner + 31) / 32; }
  __device__ std::int64_t outer(std::int64_t unit) const { return unit / stripes(); }
  __device__ std::int64_t column(std::int64_t unit) const { return unit % stripes() * 32 + threadIdx.x; }
};
inline Launch over_columns(std::int64_t outer, std::int64_t inner, void* stream) {
  return {blocks_for(outer * ceil_div(inner, 32), 1), {32, 8}, 0, stream_of(stream)};
}
/// Over the warps of a block for each column. `partial`: shared memory for all threads.
template <class F>
__device__ inline float column_reduce(float value, F f, float (*partial)[32]) {
  __syncthreads();  // what the reduction before left may still be read
  partial[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  value = partial[0][threadIdx.x];
  for (unsigned y = 1; y < blockDim.y; ++y) value = f(value, partial[y][threadIdx.x]);
  return value;
}

/// N elements of operand `i` that belong to those of the result from `element` on.
template <class T, int N>
__device__ inline void fetch(const void* x, const Places& places, int i, std::int64_t element, float (&to)[N]) {
  const T* at = static_cast<const T*>(x) + place(places, i, element);
  if (N == 1 || places.whole[i] || places.strides[i][places.axes - 1] != 0) return read<T, N>(at, to);
  const auto one = static_cast<float>(*at);
  for (int k = 0; k < N; ++k) to[k] = one;
}
/// True when n elements side by side of the result have n side by side of this operand, where they may be read at once,
/// or one.
inline bool fetches(const void* x, const Places& places, int i, std::int64_t n, std::size_t size) {
  if (places.axes == 0) return n == 1;
  const int last = places.axes - 1;
  if (places.extents[last] % n != 0) return false;
  return places.strides[i][last] == 0 || aligned(x, static_cast<std::size_t>(n) * size);
}

}  // namespace modelflow::cuda
