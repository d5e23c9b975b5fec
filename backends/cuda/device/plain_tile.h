// The product of a block in plain arithmetic: 64 x 64 results, a slice of 16 along k at a time, 4 x 4 results for each
// thread.
#pragma once

#include "backends/cuda/device/device.h"

namespace modelflow::cuda {

constexpr int kPlainSide = 64, kPlainDepth = 16, kPlainThreads = 256;
/// 16 numbers along k of 64 rows of A, or columns of B; one more, so that no two threads meet in a bank.
using PlainSlice = float[kPlainDepth][kPlainSide + 1];

/// fetch(a, b, k0) fills both slices from k0 on, with all threads; use(row, column, sum) gets each result once.
template <class Fetch, class Use>
__device__ inline void plain_block(std::int64_t k, Fetch fetch, Use use) {
  __shared__ PlainSlice a, b;
  constexpr int kLine = 16, kEach = kPlainSide / kLine;
  const int tx = static_cast<int>(threadIdx.x) % kLine, ty = static_cast<int>(threadIdx.x) / kLine;
  float sums[kEach][kEach] = {};
  for (std::int64_t k0 = 0; k0 < k; k0 += kPlainDepth) {
    fetch(a, b, k0);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kPlainDepth; ++d)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] += a[d][ty + kLine * i] * b[d][tx + kLine * j];
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) use(ty + kLine * i, tx + kLine * j, sums[i][j]);
}

}  // namespace modelflow::cuda
