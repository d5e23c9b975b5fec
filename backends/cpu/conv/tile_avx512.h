// The inner kernel of dense convolutions: R output pixels x N vectors of 16 filters in registers. For files named
// *_avx512.cpp only; everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv/epilogue_avx512.h"

namespace modelflow::cpu {
namespace {

/// Floats in a vector.
constexpr std::ptrdiff_t kFloats = 16;

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
  bool resume, pause;  ///< begin with the sums in y; leave sums there, without residual and activation
  const float* ahead;  ///< weights to bring into L2 meanwhile, `ahead_step` floats per product
  std::int64_t ahead_step;
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
      acc[r][j] = _mm512_add_ps(acc[r][j], _mm512_maskz_loadu_ps(mask, t.added + r * t.y_step + kFloats * j));
    }
  }
}

/// The vector that sums begin with: the bias, or what an earlier part of the products left in y.
MODELFLOW_INLINE __m512 begin_sum(const Tile& t, int r, int j, bool last) {
  if (!t.resume) return _mm512_loadu_ps(t.bias + kFloats * j);
  return _mm512_maskz_loadu_ps(last ? t.mask : 0xffff, t.y + r * t.y_step + kFloats * j);
}

template <int R, int N>
MODELFLOW_INLINE void write_tile(const __m512 (&acc)[R][N], const Tile& t) {
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j + 1 < N; ++j) _mm512_storeu_ps(t.y + r * t.y_step + kFloats * j, acc[r][j]);
    _mm512_mask_storeu_ps(t.y + r * t.y_step + kFloats * (N - 1), t.mask, acc[r][N - 1]);
  }
}

template <int R, int N>
MODELFLOW_INLINE void store_tile(__m512 (&acc)[R][N], const Tile& t, const Epilogue& epilogue) {
  if (t.pause) return write_tile(acc, t);
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
  write_tile(acc, t);
  if (!done)
    activate_rows(epilogue, t.y, t.y_step, t.added, R,
                  16 * (N - 1) + __builtin_popcount(static_cast<unsigned>(t.mask)));
}

/// One step over one element of every pixel, or over two neighbouring ones (`Pair`); three pixels share a pointer, so
/// that addresses fit the registers.
template <int R, int N, bool Pair>
MODELFLOW_INLINE void multiply_add(__m512 (&acc)[R][N], const float* const* a, std::ptrdiff_t step, const float* b) {
  __m512 w[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) w[j] = _mm512_loadu_ps(b + kFloats * j);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
    const float* from = a[r / 3] + (r % 3) * step;
    __m512 v;
    if constexpr (Pair) {
      v = _mm512_castpd_ps(_mm512_set1_pd(reinterpret_cast<const PairOfFloats*>(from)->both));
    } else {
      v = _mm512_set1_ps(*from);
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = _mm512_fmadd_ps(v, w[j], acc[r][j]);
  }
}

/// acc += all products of the tile.
template <int R, int N, bool Pair>
MODELFLOW_INLINE void multiply_tile(__m512 (&acc)[R][N], const Tile& t) {
  constexpr int kGroups = (R + 2) / 3, kStep = Pair ? 2 : 1;
  const float* b = t.b;
  const float* ahead = t.ahead;
  const std::ptrdiff_t step = t.a_step;
  for (std::int64_t i = 0; i < t.segments; ++i) {
    const float* a[kGroups];
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) a[g] = t.a + t.offsets[i] + 3 * step * g;
    for (std::int64_t k = t.length; k > 0; k -= kStep) {
      multiply_add<R, N, Pair>(acc, a, step, b);
      b += kFloats * N;
      if constexpr (N > 1) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
        ahead += t.ahead_step;
      }
#pragma GCC unroll 16
      for (int g = 0; g < kGroups; ++g) {
        a[g] += kStep;
        asm("" : "+r"(a[g]));  // else the compiler makes R pointers of them and spills
      }
    }
  }
}

/// Measured on Cascade Lake (2.5 GHz, 153 GFLOP/s): 9 x 3 and 6 x 4 run at 92 % of peak from L2, 14 x 2 at 90 %.
template <int R, int N>
void run_tile(const Tile& t, const Epilogue& epilogue) {
  __m512 acc[R][N];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = begin_sum(t, r, j, j == N - 1);
  }
  multiply_tile<R, N, false>(acc, t);
  store_tile(acc, t, epilogue);
}

/// For filters that would leave half of a vector empty: each vector holds 8 filters, for the products with two
/// neighbouring channels side by side. Lengths of segments are even. A 3 x 3 conv from 96 to 24 channels ran at
/// 105 GFLOP/s with two full vectors and runs at 140 with three of these.
template <int R, int N>
void run_pair_tile(const Tile& t, const Epilogue& epilogue) {
  constexpr int kOut = (N + 1) / 2;
  __m512 acc[R][N], out[R][kOut];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = _mm512_setzero_ps();
  }
  multiply_tile<R, N, true>(acc, t);
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kOut; ++j) {
      const __m512 low = acc[r][2 * j], high = acc[r][2 * j + 1 < N ? 2 * j + 1 : N - 1];
      const __m512 sum = _mm512_add_ps(_mm512_permutex2var_ps(low, even, high), _mm512_permutex2var_ps(low, odd, high));
      out[r][j] = _mm512_add_ps(sum, begin_sum(t, r, j, j == kOut - 1));
    }
  }
  store_tile(out, t, epilogue);
}

using TileFunction = void (*)(const Tile&, const Epilogue&);

/// Most pixels per tile for 1..4 vectors, so that accumulators, weights and a broadcast fill 32 registers.
constexpr int kTileRows[5] = {0, 16, 14, 9, 6};

template <int N, bool Pair, int R = kTileRows[N]>
TileFunction tile_of(int rows) {
  if constexpr (R > 1) {
    if (rows < R) return tile_of<N, Pair, R - 1>(rows);
  }
  if constexpr (Pair) {
    return run_pair_tile<R, N>;
  } else {
    return run_tile<R, N>;
  }
}

TileFunction tile_function(int rows, int vectors, bool paired) {
  switch (vectors) {
    case 1:
      return paired ? tile_of<1, true>(rows) : tile_of<1, false>(rows);
    case 2:
      return paired ? tile_of<2, true>(rows) : tile_of<2, false>(rows);
    case 3:
      return paired ? tile_of<3, true>(rows) : tile_of<3, false>(rows);
    default:
      return paired ? tile_of<4, true>(rows) : tile_of<4, false>(rows);
  }
}

}  // namespace
}  // namespace modelflow::cpu
