// Products of heads: matrices that lie among those of other heads, on tensor cores or in plain arithmetic.
#pragma once

#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/launches/attention.h"

namespace modelflow::cuda {

/// y = scale * a b for each head, a [m, k] and b [k, n], either of which may lie with k along its rows or across them.
/// Of k each of `parts` takes `part`, with a result of its own.
struct HeadProduct {
  std::int64_t batch, heads, m, n, k;
  HeadPlace a, b, y;
  float scale = 1;
  std::int64_t parts = 1, part = 0, y_part = 0;  ///< y_part: from one result to the next
  bool wide_a = false, wide_b = false;           ///< may be moved 16 bytes at a time

  __host__ __device__ LargeGrid grid(std::int64_t side) const {
    return {ceil_div(m, side), ceil_div(n, side), batch * heads * parts};
  }
};

/// The matrices that a block multiplies, and which of k.
template <class T, class Y>
struct HeadMatrices {
  const T *a, *b;
  Y* y;
  std::int64_t first, behind;

  __device__ HeadMatrices(const HeadProduct& p, std::int64_t unit) {
    const std::int64_t part = unit % p.parts, of_all = unit / p.parts, head = of_all % p.heads, n = of_all / p.heads;
    a = static_cast<const T*>(p.a.data) + n * p.a.batch + head * p.a.head;
    b = static_cast<const T*>(p.b.data) + n * p.b.batch + head * p.b.head;
    y = static_cast<Y*>(const_cast<void*>(p.y.data)) + n * p.y.batch + head * p.y.head + part * p.y_part;
    first = part * p.part;
    behind = part + 1 == p.parts || first + p.part > p.k ? p.k : first + p.part;
  }
};

template <class T, class Y, bool a_k_first, bool b_k_first>
__global__ void __launch_bounds__(SmallGemm::kThreads) tensor_heads(const HeadProduct p) {
  using Shape = SmallGemm;
  MF_DYNAMIC_SHARED(T, shared);
  const LargeGrid here = p.grid(Shape::kRows).here();
  if (here.z >= p.batch * p.heads * p.parts) return;
  const HeadMatrices<T, Y> at(p, here.z);
  const std::int64_t row0 = here.x * Shape::kRows, column0 = here.y * Shape::kColumns;
  const auto fetch_a = [&](T* tile, std::int64_t k) {
    fetch_lines<T, Shape::kRows, a_k_first, Shape::kThreads>(tile, at.a, p.a.row, row0, at.first + k, p.m, at.behind,
                                                             p.wide_a);
  };
  const auto fetch_b = [&](T* tile, std::int64_t k) {
    fetch_lines<T, Shape::kColumns, b_k_first, Shape::kThreads>(tile, at.b, p.b.row, column0, at.first + k, p.n,
                                                                at.behind, p.wide_b);
  };
  gemm_block<T, Shape, a_k_first, b_k_first>(at.behind - at.first, shared, fetch_a, fetch_b,
                                             [&](int r, int c, const float* sums) {
                                               const std::int64_t row = row0 + r, column = column0 + c;
                                               for (int i = 0; i < 8; ++i)
                                                 if (row < p.m && column + i < p.n)
                                                   at.y[row * p.y.row + column + i] = static_cast<Y>(sums[i] * p.scale);
                                             });
}

template <class T, class Y, bool a_k_first, bool b_k_first>
__global__ void __launch_bounds__(kPlainThreads) plain_heads(const HeadProduct p) {
  const LargeGrid here = p.grid(kPlainSide).here();
  if (here.z >= p.batch * p.heads * p.parts) return;
  const HeadMatrices<T, Y> at(p, here.z);
  const std::int64_t row0 = here.x * kPlainSide, column0 = here.y * kPlainSide;
  // Neighbouring threads read neighbouring numbers, whichever way the matrix lies.
  const auto slice = [&](PlainSlice& to, const T* x, std::int64_t stride, bool k_first, std::int64_t line0,
                         std::int64_t lines, std::int64_t k0) {
    for (int i = static_cast<int>(threadIdx.x); i < kPlainSide * kPlainDepth; i += kPlainThreads) {
      const int d = k_first ? i / kPlainSide : i % kPlainDepth, r = k_first ? i % kPlainSide : i / kPlainDepth;
      const std::int64_t line = line0 + r, k = at.first + k0 + d;
      const bool inside = line < lines && k < at.behind;
      to[d][r] = inside ? static_cast<float>(x[k_first ? k * stride + line : line * stride + k]) : 0;
    }
  };
  const auto fetch = [&](PlainSlice& a, PlainSlice& b, std::int64_t k0) {
    slice(a, at.a, p.a.row, a_k_first, row0, p.m, k0);
    slice(b, at.b, p.b.row, b_k_first, column0, p.n, k0);
  };
  plain_block(at.behind - at.first, fetch, [&](int r, int c, float sum) {
    const std::int64_t row = row0 + r, column = column0 + c;
    if (row < p.m && column < p.n) at.y[row * p.y.row + column] = static_cast<Y>(sum * p.scale);
  });
}

/// Whether each row of every head begins where so many numbers may be moved at once.
template <class T>
bool wide(const HeadPlace& place) {
  constexpr int kOnce = kChunk<T>;
  return aligned(place.data, 16) && place.batch % kOnce == 0 && place.head % kOnce == 0 && place.row % kOnce == 0;
}

/// `tensor_cores`: of numbers of 16 bits.
template <class T, class Y, bool a_k_first, bool b_k_first>
const char* multiply_heads(HeadProduct p, bool tensor_cores, void* stream) {
  if (p.parts == 1) p.part = p.k;
  if (!tensor_cores)
    return launch(plain_heads<T, Y, a_k_first, b_k_first>, p.grid(kPlainSide).launch(kPlainThreads, 0, stream), p);
  if constexpr (sizeof(T) == 2) {
    p.wide_a = wide<T>(p.a);
    p.wide_b = wide<T>(p.b);
    constexpr unsigned kShared = gemm_shared<T, SmallGemm, a_k_first, b_k_first>();
    return launch(tensor_heads<T, Y, a_k_first, b_k_first>,
                  p.grid(SmallGemm::kRows).launch(SmallGemm::kThreads, kShared, stream), p);
  }
  return "tensor cores take 16-bit numbers";
}

}  // namespace modelflow::cuda
