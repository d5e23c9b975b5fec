#pragma once

// The inner kernel of dense convolutions: R output pixels x N vectors of 16 filters in registers. For files named
// *_avx512.cpp only; everything has internal linkage.

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv_epilogue_avx512.h"

namespace modelflow::cpu {
namespace {

/// What one tile reads and writes. The products run over `segments` pieces of `length` consecutive floats of x, each
/// starting at a + offsets[i] for the first pixel and `a_step` floats further for each next pixel.
struct Tile {
  const float* a;
  std::ptrdiff_t a_step;
  const std::int32_t* offsets;
  std::int64_t segments, length;
  const float* b;  ///< packed weights, N vectors for each product
  const float* bias;
  float* y;
  std::ptrdiff_t y_step;
  const float* added;  ///< the residual, steps as y
  __mmask16 mask;      ///< lanes of the last vector
};

/// Two floats anywhere in memory, to be broadcast together.
struct __attribute__((packed, may_alias)) PairOfFloats {
  double both;
};

template <int R, int N>
MODELFLOW_INLINE void add_rows(__m512 (&acc)[R][N], const Tile& t) {
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      const __mmask16 mask = j == N - 1 ? t.mask : 0xffff;
      acc[r][j] = _mm512_add_ps(acc[r][j], _mm512_maskz_loadu_ps(mask, t.added + r * t.y_step + 16 * j));
    }
  }
}

template <int R, int N>
MODELFLOW_INLINE void store_tile(__m512 (&acc)[R][N], const Tile& t, const Epilogue& epilogue) {
  if (epilogue.residual == ops::Residual::before) add_rows(acc, t);
  with_register_activation(epilogue.activation, [&acc](auto f) {
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) acc[r][j] = f(acc[r][j]);
    }
  });
  const bool done = runs_in_registers(epilogue.activation.kind);
  if (done && epilogue.residual == ops::Residual::after) add_rows(acc, t);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j + 1 < N; ++j) _mm512_storeu_ps(t.y + r * t.y_step + 16 * j, acc[r][j]);
    _mm512_mask_storeu_ps(t.y + r * t.y_step + 16 * (N - 1), t.mask, acc[r][N - 1]);
  }
  if (!done)
    activate_rows(epilogue, t.y, t.y_step, t.added, R,
                  16 * (N - 1) + __builtin_popcount(static_cast<unsigned>(t.mask)));
}

/// One step over one element of every pixel; three pixels share a pointer, so that addresses fit the registers.
template <int R, int N>
MODELFLOW_INLINE void multiply_add(__m512 (&acc)[R][N], const float* const* a, std::ptrdiff_t step, const float* b) {
  __m512 w[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) w[j] = _mm512_loadu_ps(b + 16 * j);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
    const __m512 v = _mm512_set1_ps(a[r / 3][(r % 3) * step]);
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = _mm512_fmadd_ps(v, w[j], acc[r][j]);
  }
}

/// Measured on Cascade Lake (2.5 GHz, 153 GFLOP/s): 9 x 3 and 6 x 4 run at 92 % of peak from L2, 14 x 2 at 90 %.
template <int R, int N>
void run_tile(const Tile& t, const Epilogue& epilogue) {
  constexpr int kGroups = (R + 2) / 3;
  __m512 acc[R][N];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = _mm512_loadu_ps(t.bias + 16 * j);
  }
  const float* b = t.b;
  const std::ptrdiff_t step = t.a_step;
  for (std::int64_t i = 0; i < t.segments; ++i) {
    const float* a[kGroups];
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) a[g] = t.a + t.offsets[i] + 3 * g * step;
    for (std::int64_t k = t.length; k > 0; --k) {
      multiply_add(acc, a, step, b);
      b += 16 * N;
#pragma GCC unroll 16
      for (int g = 0; g < kGroups; ++g) {
        ++a[g];
        asm("" : "+r"(a[g]));  // else the compiler makes R pointers of them and spills
      }
    }
  }
  store_tile(acc, t, epilogue);
}

/// For panels whose last vector has eight filters or less: that vector holds two products of each, side by side, and
/// takes one multiplication for two input channels. Lengths of segments are even. N counts the full vectors before it;
/// weights: for each pair of channels N vectors, N vectors, and the one with both.
template <int R, int N>
void run_half_tile(const Tile& t, const Epilogue& epilogue) {
  constexpr int kGroups = (R + 2) / 3;
  __m512 acc[R][N + 1];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j <= N; ++j) acc[r][j] = j < N ? _mm512_loadu_ps(t.bias + 16 * j) : _mm512_setzero_ps();
  }
  const float* b = t.b;
  const std::ptrdiff_t step = t.a_step;
  for (std::int64_t i = 0; i < t.segments; ++i) {
    const float* a[kGroups];
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) a[g] = t.a + t.offsets[i] + 3 * g * step;
    for (std::int64_t k = t.length; k > 0; k -= 2) {
#pragma GCC unroll 2
      for (int odd = 0; odd < 2; ++odd) {
        __m512 w[N + 1];
#pragma GCC unroll 4
        for (int j = 0; j < N; ++j) w[j] = _mm512_loadu_ps(b + 16 * (N * odd + j));
#pragma GCC unroll 32
        for (int r = 0; N > 0 && r < R; ++r) {
          const __m512 v = _mm512_set1_ps(a[r / 3][(r % 3) * step + odd]);
#pragma GCC unroll 4
          for (int j = 0; j < N; ++j) acc[r][j] = _mm512_fmadd_ps(v, w[j], acc[r][j]);
        }
      }
      const __m512 both = _mm512_loadu_ps(b + 32 * N);
#pragma GCC unroll 32
      for (int r = 0; r < R; ++r) {
        const auto* pair = reinterpret_cast<const PairOfFloats*>(a[r / 3] + (r % 3) * step);
        acc[r][N] = _mm512_fmadd_ps(_mm512_castpd_ps(_mm512_set1_pd(pair->both)), both, acc[r][N]);
      }
      b += 32 * N + 16;
#pragma GCC unroll 16
      for (int g = 0; g < kGroups; ++g) {
        a[g] += 2;
        asm("" : "+r"(a[g]));  // else the compiler makes R pointers of them and spills
      }
    }
  }
  const __m512i even = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 14, 12, 10, 8, 6, 4, 2, 0);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
    const __m512 sum = _mm512_add_ps(acc[r][N], _mm512_permute_ps(acc[r][N], 0xb1));
    acc[r][N] = _mm512_add_ps(_mm512_permutexvar_ps(even, sum), _mm512_loadu_ps(t.bias + 16 * N));
  }
  store_tile(acc, t, epilogue);
}

using TileFunction = void (*)(const Tile&, const Epilogue&);

/// Most pixels per tile for 1..4 vectors, so that accumulators, weights and a broadcast fill 32 registers; and the same
/// when the last vector is half full.
constexpr int kTileRows[5] = {0, 16, 14, 9, 6};
constexpr int kHalfTileRows[5] = {0, 16, 13, 9, 7};

template <int N, bool H, int R = H ? kHalfTileRows[N] : kTileRows[N]>
TileFunction tile_of(int rows) {
  if constexpr (R > 1) {
    if (rows < R) return tile_of<N, H, R - 1>(rows);
  }
  if constexpr (H) {
    return run_half_tile<R, N - 1>;
  } else {
    return run_tile<R, N>;
  }
}

TileFunction tile_function(int rows, int vectors, bool half) {
  switch (vectors) {
    case 1:
      return half ? tile_of<1, true>(rows) : tile_of<1, false>(rows);
    case 2:
      return half ? tile_of<2, true>(rows) : tile_of<2, false>(rows);
    case 3:
      return half ? tile_of<3, true>(rows) : tile_of<3, false>(rows);
    default:
      return half ? tile_of<4, true>(rows) : tile_of<4, false>(rows);
  }
}

}  // namespace
}  // namespace modelflow::cpu
