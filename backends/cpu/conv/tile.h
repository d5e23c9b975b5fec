// The inner kernel of dense convolutions: R output pixels x N vectors of filters in registers. For files named so, see
// vector.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/conv/epilogue.h"
#include "backends/cpu/vector/tile_step.h"

namespace modelflow::cpu {
namespace {

/// Floats in a vector.
constexpr std::ptrdiff_t kFloats = kLanes;

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
  Rest last{kLanes};   ///< what there is of the last vector
  bool whole;          ///< all of it
  bool resume, pause;  ///< begin with the sums in y; leave sums there, without residual and activation
  const float* ahead;  ///< what to bring into L2 meanwhile, `ahead_step` floats per product
  std::int64_t ahead_step;
  std::ptrdiff_t ahead_tile;  ///< from `ahead` of a tile to that of the next

  /// The next tile of the row; this one has so many pixels.
  MODELFLOW_INLINE void advance(std::ptrdiff_t pixels) {
    a += pixels * a_step;
    y += pixels * y_step;
    if (added) added += pixels * y_step;
    ahead += ahead_tile;
  }
};

/// Two floats, again and again.
MODELFLOW_INLINE Floats all_pairs(const float* from) {
  typedef double Doubles __attribute__((vector_size(sizeof(Floats))));
  double both;
  __builtin_memcpy(&both, from, sizeof both);
  return reinterpret_cast<Floats>(both - Doubles{});
}

/// A vector, or what there is of the last one. Masks cost nothing on AVX-512, and much in stores of AVX2.
MODELFLOW_INLINE Floats load_part(const Tile& t, const float* from, bool last) {
  return last && (kLanes == 16 || !t.whole) ? load(from, t.last) : load(from);
}

/// f(sums, residual)
template <int R, int N, class F>
MODELFLOW_INLINE void join_rows(Floats (&acc)[R][N], const Tile& t, F f) {
  const float* from = t.added;
  const std::ptrdiff_t step = t.y_step;
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r, from += step) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = f(acc[r][j], load_part(t, from + kFloats * j, j == N - 1));
  }
}

/// The vector that sums begin with: the bias, or what an earlier part of the products left in y.
MODELFLOW_INLINE Floats begin_sum(const Tile& t, int r, int j, bool last) {
  return t.resume ? load_part(t, t.y + r * t.y_step + kFloats * j, last) : load(t.bias + kFloats * j);
}

template <int R, int N>
MODELFLOW_INLINE void write_tile(const Floats (&acc)[R][N], const Tile& t) {
  // What a store may change is read once.
  float* to = t.y;
  const std::ptrdiff_t step = t.y_step;
  const bool whole = kLanes != 16 && t.whole;
  const Rest last = t.last;
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r, to += step) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      if (j < N - 1 || whole)
        store(to + kFloats * j, acc[r][j]);
      else
        store(to + kFloats * j, acc[r][j], last);
    }
  }
}

template <int R, int N>
MODELFLOW_INLINE void bend_rows(Floats (&acc)[R][N], const Epilogue& epilogue) {
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) {
    const Affine<LeakyRelu> f = bend_of(epilogue.activation, epilogue.slopes + kFloats * j);
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) acc[r][j] = f(acc[r][j]);
  }
}

/// By way of the stack, where the sums lie one behind the other.
template <int R, int N>
MODELFLOW_INLINE void activate_tile(Floats (&acc)[R][N], const ActivationSpec& spec) {
  alignas(sizeof(Floats)) float sums[R * N * kFloats];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) store(sums + kFloats * (r * N + j), acc[r][j]);
  }
  activate(spec, sums, sums, R * N * kFloats);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = load(sums + kFloats * (r * N + j));
  }
}

template <int R, int N>
MODELFLOW_INLINE void store_tile(Floats (&acc)[R][N], const Tile& t, const Epilogue& epilogue) {
  if (t.pause) return write_tile(acc, t);
  if (epilogue.residual == ops::Residual::before) join_rows(acc, t, [](Floats x, Floats added) { return x + added; });
  with_register_activation(epilogue.activation, [&acc](auto f) {
#pragma GCC unroll 32
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) acc[r][j] = f(acc[r][j]);
    }
  });
  if (epilogue.activation.kind == Activation::prelu) bend_rows(acc, epilogue);
  if (!runs_in_registers(epilogue.activation.kind)) activate_tile(acc, epilogue.activation);
  with_late_residual(epilogue.residual, [&acc, &t](auto f) { join_rows(acc, t, f); });
  write_tile(acc, t);
}

/// Steps in front of which weights are brought from L2 into L1, which the machine does too late by itself:
/// HRNet-W18 1.04x, VoVNet-19 and CSPDarkNet-S 1.03x of without, EfficientNet-B1 as before (Cascade Lake); AVX2 was not
/// measured.
constexpr int kStepsAhead = kLanes == 16 ? 8 : 0;

/// One step over one element of every pixel, or over two neighbouring ones (`Pair`), `At` steps further; three pixels
/// share a pointer, so that addresses fit the registers.
template <bool Pair, int At, int R, int N, std::size_t... Rows>
MODELFLOW_INLINE void multiply_add(Floats (&acc)[R][N], const float* const* a, std::ptrdiff_t step, const float* b,
                                   std::index_sequence<Rows...>) {
  Floats w[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) {
    const float* at = b + kFloats * (N * At + j);
    if constexpr (kStepsAhead > 0)
      _mm_prefetch(reinterpret_cast<const char*>(at + kFloats * N * kStepsAhead), _MM_HINT_T0);
    w[j] = load(at);
  }
  const auto pixel = [&](Floats(&sums)[N], Floats x) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) add_product(sums[j], x, w[j]);
  };
  if constexpr (Pair)
    (pixel(acc[Rows], all_pairs(a[Rows / 3] + (Rows % 3) * step + 2 * At)), ...);
  else
    (pixel(acc[Rows], all_at<Rows % 3, At>(a[Rows / 3], step)), ...);
}

/// The lines of R rows of N vectors that a tile will write: brought into L1 while it multiplies, a row per step, since
/// in a burst they keep other loads waiting. Results that lie beyond L2 gain a tenth by it (Cascade Lake: 64 to 192
/// channels over 28 x 28 pixels 184 -> 163 us); AVX2 on Zen 3 gains nothing.
template <int R, int N>
struct LinesAhead {
  float* to;
  std::ptrdiff_t step;
  int left = R;

  explicit LinesAhead(const Tile& t) : to(t.y), step(t.y_step) {}

  MODELFLOW_INLINE void row() {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) __builtin_prefetch(to + kFloats * j);
    to += step;
    --left;
  }
};

/// acc += all products of the tile.
template <int R, int N, bool Pair>
MODELFLOW_INLINE void multiply_tile(Floats (&acc)[R][N], const Tile& t) {
  constexpr int kGroups = (R + 2) / 3, kStep = Pair ? 2 : 1;
  LinesAhead<R, Pair ? (N + 1) / 2 : N> lines(t);
  const float* b = t.b;
  const float* ahead = t.ahead;
  const std::ptrdiff_t step = t.a_step;
  for (std::int64_t i = 0; i < t.segments; ++i) {
    const float* a[kGroups];
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) a[g] = t.a + t.offsets[i] + 3 * step * g;
    const auto steps = [&]<int... At>(std::integer_sequence<int, At...>) __attribute__((always_inline)) {
      constexpr int kSteps = sizeof...(At);
      (multiply_add<Pair, At>(acc, a, step, b, std::make_index_sequence<R>()), ...);
      b += kFloats * N * kSteps;
#pragma GCC unroll 16
      for (int g = 0; g < kGroups; ++g) {
        a[g] += kStep * kSteps;
        asm("" : "+r"(a[g]));  // else the compiler makes R pointers of them and spills
      }
      if constexpr (N > 1) {
#pragma GCC unroll 4
        for (int i = 0; i < kSteps; ++i) {
          _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
          ahead += t.ahead_step;
        }
      }
    };
    std::int64_t k = t.length;
    // With 32 registers the compiler keeps sums in memory where a loop is that long.
    if constexpr (kLanes < 16) {
      for (; k >= 4 * kStep; k -= 4 * kStep) steps(std::make_integer_sequence<int, 4>());
    } else {
      for (; k > 0 && lines.left > 0; k -= kStep) {
        lines.row();
        steps(std::make_integer_sequence<int, 1>());
      }
    }
    for (; k > 0; k -= kStep) steps(std::make_integer_sequence<int, 1>());
  }
}

/// Measured on Cascade Lake (2.5 GHz, 153 GFLOP/s): 9 x 3 and 6 x 4 run at 92 % of peak from L2, 14 x 2 at 90 %.
template <int R, int N>
MODELFLOW_INLINE void run_tile(const Tile& t, const Epilogue& epilogue) {
  Floats acc[R][N];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = begin_sum(t, r, j, j == N - 1);
  }
  multiply_tile<R, N, false>(acc, t);
  store_tile(acc, t, epilogue);
}

template <std::size_t... i>
MODELFLOW_INLINE Floats sums_of_pairs(Floats low, Floats high, std::index_sequence<i...>) {
  return __builtin_shufflevector(low, high, (2 * i)...) + __builtin_shufflevector(low, high, (2 * i + 1)...);
}

/// For filters that would leave half of a vector empty: each vector holds half as many filters, for the products with
/// two neighbouring channels side by side. Lengths of segments are even. A 3 x 3 conv from 96 to 24 channels ran at 105
/// GFLOP/s with two full vectors and runs at 140 with three of these.
template <int R, int N>
MODELFLOW_INLINE void run_pair_tile(const Tile& t, const Epilogue& epilogue) {
  constexpr int kOut = (N + 1) / 2;
  Floats acc[R][N], out[R][kOut];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = Floats{};
  }
  multiply_tile<R, N, true>(acc, t);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kOut; ++j) {
      const Floats low = acc[r][2 * j], high = acc[r][2 * j + 1 < N ? 2 * j + 1 : N - 1];
      out[r][j] = sums_of_pairs(low, high, std::make_index_sequence<kLanes>()) + begin_sum(t, r, j, j == kOut - 1);
    }
  }
  store_tile(out, t, epilogue);
}

/// So many tiles side by side.
template <int R, int N, bool Pair>
void run_row(Tile t, const Epilogue& epilogue, std::int64_t count) {
  for (; count > 0; --count, t.advance(R)) {
    if constexpr (Pair)
      run_pair_tile<R, N>(t, epilogue);
    else
      run_tile<R, N>(t, epilogue);
  }
}

using TileFunction = void (*)(Tile first, const Epilogue&, std::int64_t count);

/// Most pixels per tile for 1..4 vectors, so that accumulators, weights and a broadcast fill the registers, 32 or 16.
constexpr bool kWide = kLanes == 16;
constexpr int kTileRows[5] = {0, kWide ? 16 : 12, kWide ? 14 : 6, kWide ? 9 : 4, kWide ? 6 : 2};

template <int N, bool Pair, int R = kTileRows[N]>
TileFunction tile_of(int rows) {
  if constexpr (R > 1) {
    if (rows < R) return tile_of<N, Pair, R - 1>(rows);
  }
  if constexpr (Pair && !kWide)
    return nullptr;  // vectors of 8 are not paired
  else
    return run_row<R, N, Pair>;
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
