// Matrix products of float32 over vectors: tiles of 6 x 64 sums in registers on AVX-512, of 6 x 16 on AVX2. For files
// named so, see vector.h.
#pragma once

#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/vector/activation.h"
#include "backends/cpu/vector/tile_step.h"
#include "backends/cpu/vector/transpose.h"

// Why tiles of our own: on Cascade Lake this one keeps 136 to 145 of 150 GFLOP/s per core with B in L2 (oneDNN's brgemm
// ukernel: 129), needs no code generation when a session is loaded, takes A where it lies, and finishes bias, residual
// and activation while the tile is in L1.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kPanel = 2 * kLanes;
// Registers of C and B and one of A: 6 x 4 + 4 + 1 of 32, or 6 x 2 + 2 + 1 of 16. 12 x 2 of 32 is as fast, but 12 rows
// that are a multiple of 4 KiB apart do not fit in an 8-way L1, and few rows want wide tiles.
constexpr std::size_t kMaxRows = 6;
constexpr std::size_t kMaxColumns = kLanes == 16 ? 2 * kPanel : kPanel;
// So few rows would wait for their sums in a tile of one panel.
constexpr std::size_t kFewRows = 2;
/// Steps of k in front of which B is brought from L2 into L1, where a block of it does not stay there: 0 for never. The
/// machine does that by itself, but late (Cascade Lake, of 136 GFLOP/s that fit: 64 x 896 x 4864 115 -> 120, 16 x 768 x
/// 3072 71 -> 78; 4 and 12 steps are as good). It costs 3 % where B is in L1 anyway: k of 64 and 96.
constexpr std::size_t kStepsAhead = kLanes == 16 ? 8 : 0;
constexpr std::size_t kDepthInL1 = 96;  // 24 KiB of B for a tile

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
  const float* a;
  std::size_t lda;
  const float* b;
  std::size_t ldb, panel;
  float* c;
  std::size_t ldc, k;
  Rest last;   // what there is of the last register
  bool whole;  // all of it
  const float* bias;
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

// Rows are reached from one pointer per three rows and the row length: more pointers than that do not fit in registers.
constexpr int kGroup = 3;

// Scale, bias and base on the sums of a tile, and out with them.
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
  if (base) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r, base += base_ld) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[r][v] += load_part(base + kLanes * v, v);
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

/// sums += the step `At` of the product: a column of A, from one pointer per three rows, times a row of B. B is fetched
/// `Fetch` steps ahead.
template <std::size_t Fetch, int At, int MR, int NV, std::size_t... Rows, class Last>
MODELFLOW_INLINE void multiply_step(Floats (&acc)[MR][NV], const float* const* a, std::ptrdiff_t lda, const float* b,
                                    const float* b2, std::index_sequence<Rows...>, Last last) {
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
  (row(acc[Rows], all_at<Rows % kGroup, At>(a[Rows / kGroup], lda)), ...);
}

template <std::size_t Fetch, int MR, int NV, class Last>
MODELFLOW_INLINE void multiply_tile(const Tile& t, Last last) {
  Floats acc[MR][NV] = {};
  const float* a[(MR + kGroup - 1) / kGroup];
  const auto lda = static_cast<std::ptrdiff_t>(t.lda);
  const std::size_t ldb = t.ldb;
#pragma GCC unroll 4
  for (int g = 0; g * kGroup < MR; ++g) a[g] = t.a + g * kGroup * lda;
  const float *b = t.b, *b2 = t.b + t.panel;
  LinesAhead<NV> rows(t, MR);
  const auto steps = [&]<int... At>(std::integer_sequence<int, At...>) __attribute__((always_inline)) {
    ((multiply_step<Fetch, At>(acc, a, lda, b, b2, std::make_index_sequence<MR>(), last), b += ldb, b2 += ldb), ...);
#pragma GCC unroll 4
    for (int g = 0; g * kGroup < MR; ++g) {
      a[g] += sizeof...(At);
      asm("" : "+r"(a[g]));  // or the compiler makes one pointer per row and step again, and spills them
    }
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
template <std::size_t Fetch, int MR, int NV>
__attribute__((noinline)) void tile(const Tile& t) {
  if constexpr (kLanes < 16) {
    if (t.whole) return multiply_tile<Fetch, MR, NV>(t, Whole{});
  }
  multiply_tile<Fetch, MR, NV>(t, t.last);
}

using TileFunction = void (*)(const Tile&);

template <std::size_t Fetch, std::size_t MR, std::size_t NV>
constexpr TileFunction tile_of() {
  if constexpr (NV * kLanes <= kMaxColumns || MR <= kFewRows)
    return tile<Fetch, MR, NV>;
  else
    return nullptr;  // more sums than registers
}

#define MODELFLOW_TILES(fetch, rows) \
  { tile_of<fetch, rows, 1>(), tile_of<fetch, rows, 2>(), tile_of<fetch, rows, 3>(), tile_of<fetch, rows, 4>() }
#define MODELFLOW_ROWS(fetch)                                                                                   \
  {                                                                                                             \
    MODELFLOW_TILES(fetch, 1), MODELFLOW_TILES(fetch, 2), MODELFLOW_TILES(fetch, 3), MODELFLOW_TILES(fetch, 4), \
        MODELFLOW_TILES(fetch, 5), MODELFLOW_TILES(fetch, 6)                                                    \
  }
constexpr TileFunction kTiles[2][kMaxRows][4] = {MODELFLOW_ROWS(0), MODELFLOW_ROWS(kStepsAhead)};
#undef MODELFLOW_ROWS
#undef MODELFLOW_TILES

using Use = ops::MatMulAttrs::Residual;

// Activation (and a residual that comes after it) on a tile that was just written.
void finish(const Gemm& g, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns) {
  with_activation(g.activation, [&](auto f) {
    for (std::size_t r = m; r < m + rows; ++r) {
      float* c = g.c + r * g.ldc + n;
      const float* residual = g.residual && g.residual_use != Use::before ? g.residual + r * g.ldr + n : nullptr;
      const bool times = g.residual_use == Use::times;
      vectors(columns, [=](std::size_t j, auto part) {
        Floats x = f(load(c + j, part));
        if (residual) {
          const Floats other = load(residual + j, part);
          x = times ? x * other : x + other;
        }
        store(c + j, x, part);
      });
    }
  });
}

struct Depth {
  std::size_t begin, size;
  bool first, last;
};

// One block of up to as many columns as a tile has, by `rows` rows by `depth`.
void block(const Gemm& g, const Depth& depth, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns,
           const Ahead& ahead) {
  const std::size_t registers = (columns + kLanes - 1) / kLanes, last = columns - (registers - 1) * kLanes;
  Tile t{g.a + m * g.lda + depth.begin,
         g.lda,
         g.b + n / kPanel * g.panel + depth.begin * g.ldb,
         g.ldb,
         g.panel,
         g.c + m * g.ldc + n,
         g.ldc,
         depth.size,
         Rest(last),
         last == kLanes,
         depth.first && g.bias ? g.bias + n : nullptr,
         nullptr,
         0,
         g.scale,
         ahead};
  if (!depth.first) {
    t.base = t.c;
    t.base_ld = g.ldc;
  } else if (g.residual && g.residual_use == Use::before) {
    t.base = g.residual + m * g.ldr + n;
    t.base_ld = g.ldr;
  }
  const bool fetched = g.ldb == kPanel && depth.size > kDepthInL1;
  kTiles[fetched][rows - 1][registers - 1](t);
  const bool more = g.activation.kind != Activation::none || (g.residual && g.residual_use != Use::before);
  if (depth.last && more) finish(g, m, rows, n, columns);
}

Ahead fetch_ahead(const Gemm& g, std::size_t n, std::size_t depth_begin, std::size_t depth_size, std::size_t tiles) {
  const std::size_t steps = depth_size / 4 * tiles;
  if (g.ldb != kPanel || steps == 0) return {};
  const std::size_t all = depth_size * (kPanel / 16);  // lines of a panel
  return {g.b + n / kPanel * g.panel + depth_begin * g.ldb, (all + steps - 1) / steps, all};
}

// On AVX-512 two panels of B (192 KiB), the two that are fetched meanwhile and 144 rows of A (432 KiB) stay in an L2 of
// 1 MiB together with C. On AVX2 a panel of B takes three quarters of L1, and the rows of A half of L2.
GemmBlocks blocks(const Target& target) {
  const auto l1 = static_cast<std::size_t>(target.l1), l2 = static_cast<std::size_t>(target.l2);
  const std::size_t near = kLanes == 16 ? l2 * 3 / 32 : l1 * 3 / 4;
  const std::size_t most = near / (kPanel * sizeof(float)) / 4 * 4;
  GemmBlocks blocks;
  blocks.depth = most < 64 ? 64 : most < blocks.depth ? most : blocks.depth;
  if (kLanes == 16) return blocks;
  const std::size_t rows = l2 / 2 / (blocks.depth * sizeof(float)) / kMaxRows * kMaxRows;
  blocks.rows = rows < 24 ? 24 : rows < blocks.rows ? rows : blocks.rows;
  return blocks;
}

void gemm(const Gemm& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t rows = m_end - m_begin, chunks = (rows + g.blocks.rows - 1) / g.blocks.rows;
  const std::size_t width = rows <= kFewRows ? 2 * kPanel : kMaxColumns;
  // A single tile of rows reads B once, best in long streams, which the machine fetches by itself (8 % faster).
  const bool streams = rows <= kMaxRows;
  const std::size_t passes = g.k && !streams ? (g.k + g.blocks.depth - 1) / g.blocks.depth : 1;
  const std::size_t depth_size = ((g.k + passes - 1) / passes + 3) / 4 * 4;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const std::size_t begin = pass * depth_size, size = g.k - begin < depth_size ? g.k - begin : depth_size;
    const Depth depth{begin, size, pass == 0, pass + 1 == passes};
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t m0 = m_begin + rows * chunk / chunks, m1 = m_begin + rows * (chunk + 1) / chunks;
      const std::size_t tiles = (m1 - m0 + kMaxRows - 1) / kMaxRows;
      const std::size_t least = tiles ? (m1 - m0) / tiles : 0, more = m1 - m0 - least * tiles;
      for (std::size_t n = n_begin; n < n_end; n += width) {
        const std::size_t columns = n_end - n < width ? n_end - n : width;
        Ahead ahead = streams             ? Ahead{}
                      : n + width < n_end ? fetch_ahead(g, n + width, begin, size, tiles)
                      : !depth.last       ? fetch_ahead(g, n_begin, begin + size, size, tiles)
                                          : Ahead{};
        std::size_t rest = 0;
        for (std::size_t m = m0, height; m < m1; m += height) {  // equal tiles: 32 rows are 5 + 5 + 6 + 5 + 5 + 6
          rest += more;
          height = least + (rest >= tiles);
          if (rest >= tiles) rest -= tiles;
          block(g, depth, m, height, n, columns, ahead);
          ahead.advance(size);
        }
      }
    }
  }
}

/// Rows begin to end of a panel.
void pack_panel(const float* b, std::size_t ldb, bool transposed, std::size_t columns, std::size_t begin,
                std::size_t end, float* to) {
  for (std::size_t start = 0; start < kPanel; start += kLanes) {
    const std::size_t left = columns <= start ? 0 : columns - start, width = left < kLanes ? left : kLanes;
    if (transposed) {
      const float* from = b + start * ldb;
      for (std::size_t i = begin; i < end; i += kLanes)
        transpose_block(from + i, ldb, to + i * kPanel + start, kPanel, width, end - i, Whole{});
    } else {
      const Rest part(width);
      for (std::size_t i = begin; i < end; ++i) store(to + i * kPanel + start, load(b + i * ldb + start, part));
    }
  }
}

void pack_b(const float* b, std::size_t ldb, bool transposed, std::size_t k, std::size_t n, std::size_t first,
            std::size_t last, float* out) {
  // Some rows of all panels before the next ones: few enough to be read side by side as streams, and a page of each at
  // hand. Panel by panel every line of large weights would be on another page.
  const std::size_t rows = transposed ? k : 8;
  for (std::size_t begin = 0; begin < k; begin += rows) {
    const std::size_t end = k - begin < rows ? k : begin + rows;
    for (std::size_t p = first; p < last; ++p) {
      const std::size_t column = p * kPanel, columns = n - column < kPanel ? n - column : kPanel;
      pack_panel(b + column * (transposed ? ldb : 1), ldb, transposed, columns, begin, end, out + p * kPanel * k);
    }
  }
}

}  // namespace
}  // namespace modelflow::cpu
