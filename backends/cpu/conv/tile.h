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

/// `Side` floats, more than one, again and again.
template <int Side>
MODELFLOW_INLINE Floats all_of_side(const float* from) {
  if constexpr (Side == 2) return all_pairs(from);
  if constexpr (Side == kFloats) return load(from);
#if defined(__AVX512F__)
  if constexpr (Side == 4) return _mm512_broadcast_f32x4(_mm_loadu_ps(from));
  if constexpr (Side == 8) return _mm512_broadcast_f32x8(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
  if constexpr (Side == 4) return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from));
#endif
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

/// One step over `Side` neighbouring elements of every pixel, `At` steps further; three pixels share a pointer, so that
/// addresses fit the registers.
template <int Side, int At, int R, int N, std::size_t... Rows>
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
  if constexpr (Side > 1)
    (pixel(acc[Rows], all_of_side<Side>(a[Rows / 3] + (Rows % 3) * step + Side * At)), ...);
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
template <int R, int N, int Side>
MODELFLOW_INLINE void multiply_tile(Floats (&acc)[R][N], const Tile& t) {
  constexpr int kGroups = (R + 2) / 3, kStep = Side;
  LinesAhead<R, (N + Side - 1) / Side> lines(t);
  const float* b = t.b;
  const float* ahead = t.ahead;
  const std::ptrdiff_t step = t.a_step;
  for (std::int64_t i = 0; i < t.segments; ++i) {
    const float* a[kGroups];
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) a[g] = t.a + t.offsets[i] + 3 * step * g;
    const auto steps = [&]<int... At>(std::integer_sequence<int, At...>) __attribute__((always_inline)) {
      constexpr int kSteps = sizeof...(At);
      (multiply_add<Side, At>(acc, a, step, b, std::make_index_sequence<R>()), ...);
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
  multiply_tile<R, N, 1>(acc, t);
  store_tile(acc, t, epilogue);
}

template <std::size_t... i>
MODELFLOW_INLINE Floats sums_of_pairs(Floats low, Floats high, std::index_sequence<i...>) {
  return __builtin_shufflevector(low, high, (2 * i)...) + __builtin_shufflevector(low, high, (2 * i + 1)...);
}

/// The sums of each `Side` neighbouring lanes, one behind the other.
template <int Side>
MODELFLOW_INLINE Floats sums_of_side(Floats v) {
  constexpr auto kLanesOf = std::make_index_sequence<kLanes>();
  const auto halved = [](Floats x) __attribute__((always_inline)) { return sums_of_pairs(x, x, kLanesOf); };
  for (int left = Side; left > 1; left /= 2) v = halved(v);
  return v;
}

/// For filters that would leave half of a vector empty or more: each vector holds fewer filters, for the products with
/// `Side` neighbouring channels side by side, of which lengths of segments are multiples. A 3 x 3 conv from 96 to 24
/// channels ran at 105 GFLOP/s with two full vectors and runs at 140 with three of halves.
template <int R, int N, int Side>
MODELFLOW_INLINE void run_side_tile(const Tile& t, const Epilogue& epilogue) {
  constexpr int kOut = (N + Side - 1) / Side;
  Floats acc[R][N], out[R][kOut];
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) acc[r][j] = Floats{};
  }
  multiply_tile<R, N, Side>(acc, t);
#pragma GCC unroll 32
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kOut; ++j) {
      if constexpr (Side == 2) {
        const Floats low = acc[r][2 * j], high = acc[r][2 * j + 1 < N ? 2 * j + 1 : N - 1];
        out[r][j] = sums_of_pairs(low, high, std::make_index_sequence<kLanes>());
      } else {
        static_assert(N == 1);
        out[r][j] = sums_of_side<Side>(acc[r][j]);
      }
      out[r][j] += begin_sum(t, r, j, j == kOut - 1);
    }
  }
  store_tile(out, t, epilogue);
}

/// So many tiles side by side.
template <int R, int N, int Side>
void run_row(Tile t, const Epilogue& epilogue, std::int64_t count) {
  for (; count > 0; --count, t.advance(R)) {
    if constexpr (Side > 1)
      run_side_tile<R, N, Side>(t, epilogue);
    else
      run_tile<R, N>(t, epilogue);
  }
}

using TileFunction = void (*)(Tile first, const Epilogue&, std::int64_t count);

/// Most pixels per tile for 1..4 vectors, so that accumulators, weights and a broadcast fill the registers, 32 or 16.
constexpr bool kWide = kLanes == 16;
constexpr int kTileRows[5] = {0, kWide ? 16 : 12, kWide ? 14 : 6, kWide ? 9 : 4, kWide ? 6 : 2};

template <int N, int Side, int R = kTileRows[N]>
TileFunction tile_of(int rows) {
  if constexpr (R > 1) {
    if (rows < R) return tile_of<N, Side, R - 1>(rows);
  }
  return run_row<R, N, Side>;
}

/// `side`: see DensePanel. More than 2 only of a single vector, of several vectors of 8 lanes no more than 1.
TileFunction tile_function(int rows, int vectors, std::int64_t side) {
  if (vectors == 1) {
    if (side == kFloats) return tile_of<1, kFloats>(rows);
    if constexpr (kWide)
      if (side == 8) return tile_of<1, 8>(rows);
    if (side == 4) return tile_of<1, 4>(rows);
    return side == 2 ? tile_of<1, 2>(rows) : tile_of<1, 1>(rows);
  }
  if constexpr (kWide)
    if (side == 2) return vectors == 2 ? tile_of<2, 2>(rows) : vectors == 3 ? tile_of<3, 2>(rows) : tile_of<4, 2>(rows);
  return vectors == 2 ? tile_of<2, 1>(rows) : vectors == 3 ? tile_of<3, 1>(rows) : tile_of<4, 1>(rows);
}

}  // namespace
}  // namespace modelflow::cpu
