// Tiles of float32 products in registers: 6 x 64 sums on AVX-512, 6 x 16 on AVX2. For files named so, see vector.h.
#pragma once

#include <type_traits>

#include "backends/cpu/gemm/f32_packing.h"
#include "backends/cpu/vector/activation.h"
#include "backends/cpu/vector/tile_step.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kMaxColumns = kLanes == 16 ? 2 * kPanel : kPanel;
// So few rows would wait for their sums in a tile of one panel.
constexpr std::size_t kFewRows = 2;
/// Steps of k in front of which B is brought from L2 into L1, where a block of it does not stay there: 0 for never. The
/// machine does that by itself, but late (Cascade Lake, of 136 GFLOP/s that fit: 64 x 896 x 4864 115 -> 120, 16 x 768 x
/// 3072 71 -> 78; 4 and 12 steps are as good as 8). With 8 steps weights from DRAM come late on Zen 5 (24 for 8, of 768
/// x 3072: 8 rows 1.12 times as fast, 16 rows 1.07, 32 rows 1.02, 64 and more as before; from L2 4 rows 0.96, more as
/// before). It costs 3 % where B is in L1 anyway: k of 64 and 96.
constexpr std::size_t kStepsAhead = kLanes == 16 ? 24 : 0;
/// Whether rows of A are packed. Zen 3: rows of 2^n bytes get in each other's way in L1 and L2 (128 x 4096 x 4096 1.10
/// times as fast, 128 x 768 x 3072 1.06); not measured on AVX-512.
constexpr bool kPacksA = kLanes < 16;

/// What to bring into L2 meanwhile: weights come from DRAM or L3. The same lines are fetched in the panel behind.
struct Ahead {
  const float* at = nullptr;
  std::size_t lines = 0;  // per four steps of k
  std::size_t left = 0;   // lines in all

  void advance(std::size_t depth) {
    const std::size_t done = lines * (depth / 4);
    at += 16 * done;
    left = left > done ? left - done : 0;
    if (left == 0) lines = 0;
  }
};

struct Tile {
  /// Numbers in the last register. All else is set behind this: a Tile that is cleared first costs as much as a product
  /// with k of 16.
  explicit MODELFLOW_INLINE Tile(std::size_t rest) : last(rest), whole(rest == kLanes) {}

  const float* a;
  std::size_t lda;
  const float* b;
  std::size_t ldb, panel;
  float* c;
  std::size_t ldc, k;
  Rest last;   // what there is of the last register
  bool whole;  // all of it
  bool relu;   // what is stored is no less than 0
  const float* bias;
  const float* row_bias;
  const float* base;  // added to the product: residual or what C holds so far
  std::size_t base_ld;
  float scale;
  Ahead ahead;
};

/// The lines that a tile of NV registers per row writes and adds: they come from L3 or DRAM while it is computed, or
/// its last instructions wait for them. A row at a time: in a burst they keep other loads waiting (Cascade Lake, 1370 x
/// 384 x 1536: 13.8 -> 12.9 ms, of 197 x 192 x 768 a tenth).
template <int NV>
struct LinesAhead {
  const float *c, *added;
  std::size_t ldc, added_ld;
  int left;

  LinesAhead(const Tile& t, int rows)
      : c(t.c), added(t.base == t.c ? nullptr : t.base), ldc(t.ldc), added_ld(t.base_ld), left(rows) {}

  MODELFLOW_INLINE void next() {
    --left;
    fetch(c);
    c += ldc;
    if (!added) return;
    fetch(added);
    added += added_ld;
  }

 private:
  static MODELFLOW_INLINE void fetch(const float* row) {
#pragma GCC unroll 4
    for (int i = 0; i < NV * static_cast<int>(kLanes); i += 16) __builtin_prefetch(row + i);
  }
};

/// Rows of A where they lie, reached from one pointer per three rows and the row length: more pointers than that do not
/// fit in registers.
template <int MR>
class RowsInPlace {
 public:
  explicit MODELFLOW_INLINE RowsInPlace(const Tile& t) : lda_(static_cast<std::ptrdiff_t>(t.lda)) {
#pragma GCC unroll 4
    for (int g = 0; g * kGroup < MR; ++g) at_[g] = t.a + g * kGroup * lda_;
  }

  template <int Step, int Row>
  MODELFLOW_INLINE Floats number() const {
    return all_at<Row % kGroup, Step>(at_[Row / kGroup], lda_);
  }

  MODELFLOW_INLINE void advance(int steps) {
#pragma GCC unroll 4
    for (int g = 0; g * kGroup < MR; ++g) {
      at_[g] += steps;
      asm("" : "+r"(at_[g]));  // or the compiler makes one pointer per row and step again, and spills them
    }
  }

 private:
  static constexpr int kGroup = 3;
  const float* at_[(MR + kGroup - 1) / kGroup];
  std::ptrdiff_t lda_;
};

/// As pack_a left them.
template <int MR>
class PackedRows {
 public:
  explicit MODELFLOW_INLINE PackedRows(const Tile& t) : at_(t.a) {}

  template <int Step, int Row>
  MODELFLOW_INLINE Floats number() const {
    return all_at<0, Step * MR + Row>(at_, 0);
  }

  MODELFLOW_INLINE void advance(int steps) {
    at_ += steps * MR;
    asm("" : "+r"(at_));
  }

 private:
  const float* at_;
};

// Scale, bias, base and Relu on the sums of a tile, and out with them.
template <int MR, int NV, class Last>
MODELFLOW_INLINE void store_tile(const Tile& t, Floats (&acc)[MR][NV], Last last) {
  const Floats scale = all(t.scale);
  const float *bias = t.bias, *base = t.base;
  float* c = t.c;
  const std::size_t ldc = t.ldc, base_ld = t.base_ld;
  const auto load_part = [&](const float* at, int v) __attribute__((always_inline)) {
    return v == NV - 1 ? load(at, last) : load(at);
  };
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    const Floats add = bias ? load_part(bias + kLanes * v, v) : Floats{};
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) acc[r][v] = acc[r][v] * scale + add;
  }
  if (t.row_bias) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) {
      const Floats add = all(t.row_bias[r]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[r][v] += add;
    }
  }
  if (base) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r, base += base_ld) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[r][v] += load_part(base + kLanes * v, v);
    }
  }
  if (t.relu) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[r][v] = Relu{}(acc[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r, c += ldc) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      if (v == NV - 1) {
        store(c + kLanes * v, acc[r][v], last);
      } else {
        store(c + kLanes * v, acc[r][v]);
      }
    }
  }
}

/// sums += the step `At` of the product: a column of A times a row of B, which is fetched `Fetch` steps ahead.
template <std::size_t Fetch, int At, int MR, int NV, class A, std::size_t... Rows, class Last>
MODELFLOW_INLINE void multiply_step(Floats (&acc)[MR][NV], const A& a, const float* b, const float* b2,
                                    std::index_sequence<Rows...>, Last last) {
  Floats bv[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    const float* at = (v < 2 ? b : b2) + kLanes * (v % 2);
    if constexpr (Fetch > 0) _mm_prefetch(reinterpret_cast<const char*>(at + Fetch * kPanel), _MM_HINT_T0);
    bv[v] = v == NV - 1 ? load(at, last) : load(at);
  }
  const auto row = [&](Floats(&sums)[NV], Floats av) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) add_product(sums[v], av, bv[v]);
  };
  (row(acc[Rows], a.template number<At, Rows>()), ...);
}

template <std::size_t Fetch, class A, int MR, int NV, class Last>
MODELFLOW_INLINE void multiply_tile(const Tile& t, Last last) {
  Floats acc[MR][NV] = {};
  A a(t);
  const std::size_t ldb = t.ldb;
  const float *b = t.b, *b2 = t.b + t.panel;
  LinesAhead<NV> rows(t, MR);
  const auto steps = [&]<int... At>(std::integer_sequence<int, At...>) __attribute__((always_inline)) {
    ((multiply_step<Fetch, At>(acc, a, b, b2, std::make_index_sequence<MR>(), last), b += ldb, b2 += ldb), ...);
    a.advance(sizeof...(At));
  };
  const float* ahead = t.ahead.at;
  const std::size_t lines = t.ahead.lines;
  std::size_t k = t.k;
  for (; k >= 4; k -= 4) {
    for (std::size_t i = 0; i < lines; ++i, ahead += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      if (kMaxColumns > kPanel) _mm_prefetch(reinterpret_cast<const char*>(ahead + t.panel), _MM_HINT_T1);
    }
    if (rows.left > 0) rows.next();
    steps(std::make_integer_sequence<int, 4>());
  }
  for (; k > 0; --k) steps(std::make_integer_sequence<int, 1>());
  store_tile<MR, NV>(t, acc, last);
}

// A mask costs nothing on AVX-512, and on AVX2 an instruction for each load. With and without fetching are functions of
// their own: both loops in one function run 10 % slower (GCC 12).
template <std::size_t Fetch, class A, int MR, int NV>
__attribute__((noinline)) void tile(const Tile& t) {
  if constexpr (kLanes < 16) {
    if (t.whole) return multiply_tile<Fetch, A, MR, NV>(t, Whole{});
  }
  multiply_tile<Fetch, A, MR, NV>(t, t.last);
}

using TileFunction = void (*)(const Tile&);

/// `Other`: B is fetched ahead, or A is packed.
template <bool Other, std::size_t MR, std::size_t NV>
constexpr TileFunction tile_of() {
  constexpr std::size_t kFetch = Other ? kStepsAhead : 0;
  using Rows = std::conditional_t<Other && kPacksA, PackedRows<MR>, RowsInPlace<MR>>;
  if constexpr (NV * kLanes <= kMaxColumns || MR <= kFewRows)
    return tile<kFetch, Rows, MR, NV>;
  else
    return nullptr;  // more sums than registers
}

#define MODELFLOW_TILES(other, rows) \
  { tile_of<other, rows, 1>(), tile_of<other, rows, 2>(), tile_of<other, rows, 3>(), tile_of<other, rows, 4>() }
#define MODELFLOW_ROWS(other)                                                                                   \
  {                                                                                                             \
    MODELFLOW_TILES(other, 1), MODELFLOW_TILES(other, 2), MODELFLOW_TILES(other, 3), MODELFLOW_TILES(other, 4), \
        MODELFLOW_TILES(other, 5), MODELFLOW_TILES(other, 6)                                                    \
  }
constexpr TileFunction kTiles[2][kMaxRows][4] = {MODELFLOW_ROWS(false), MODELFLOW_ROWS(true)};
#undef MODELFLOW_ROWS
#undef MODELFLOW_TILES

}  // namespace
}  // namespace modelflow::cpu
