// Matrix products of float32 on AVX-512: tiles of 6 x 64 sums in registers.
#include "backends/cpu/gemm/f32_avx512.h"

#include "backends/cpu/vector/activation.h"
#include "backends/cpu/vector/transpose_avx512.h"

// Why intrinsics: on Cascade Lake this tile keeps 136 to 145 of 150 GFLOP/s per core with B in L2 (oneDNN's brgemm
// ukernel: 129), needs no code generation when a session is loaded, takes A where it lies, and finishes bias, residual
// and activation while the tile is in L1.
namespace modelflow::cpu {
namespace {

// 6 x 4 registers of C, 4 of B, 1 of A. 12 x 2 is as fast, but 12 rows that are a multiple of 4 KiB apart do not fit in
// an 8-way L1, and few rows want wide tiles.
constexpr std::size_t kMaxRows = 6;
constexpr std::size_t kMaxColumns = 2 * kGemmPanel;
// Extent of k per pass: two panels of B (96 KiB), the two that are fetched meanwhile and 144 rows of A (216 KiB) stay
// in a 1 MiB L2 together with C.
constexpr std::size_t kMaxDepth = 384;
constexpr std::size_t kMaxChunkRows = 144;

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
  __mmask16 mask;  // lanes of the last register
  const float* bias;
  const float* base;  // added to the product: residual or what C holds so far
  std::size_t base_ld;
  float scale;
  Ahead ahead;
};

// Rows are reached from one pointer per three rows and the row length: more pointers than that do not fit in registers.
constexpr int kGroup = 3;

// Scale, bias and base on the sums of a tile, and out with them.
template <int MR, int NV>
__attribute__((always_inline)) inline void store(const Tile& t, __m512 (&acc)[MR][NV]) {
  const __mmask16 mask = t.mask;
  const __m512 scale = _mm512_set1_ps(t.scale);
  const float *bias = t.bias, *base = t.base;
  float* c = t.c;
  const std::size_t ldc = t.ldc, base_ld = t.base_ld;
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    const __mmask16 lanes = v == NV - 1 ? mask : static_cast<__mmask16>(0xffff);
    const __m512 add = bias ? _mm512_maskz_loadu_ps(lanes, bias + 16 * v) : _mm512_setzero_ps();
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) acc[r][v] = _mm512_fmadd_ps(acc[r][v], scale, add);
  }
  if (base) {
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r, base += base_ld) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        const __mmask16 lanes = v == NV - 1 ? mask : static_cast<__mmask16>(0xffff);
        acc[r][v] = _mm512_add_ps(acc[r][v], _mm512_maskz_loadu_ps(lanes, base + 16 * v));
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r, c += ldc) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      if (v == NV - 1) {
        _mm512_mask_storeu_ps(c + 16 * v, mask, acc[r][v]);
      } else {
        _mm512_storeu_ps(c + 16 * v, acc[r][v]);
      }
    }
  }
}

template <int MR, int NV>
__attribute__((noinline)) void tile(const Tile& t) {
  __m512 acc[MR][NV];
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) acc[r][v] = _mm512_setzero_ps();
  }
  const float* a[(MR + kGroup - 1) / kGroup];
  const std::size_t lda = t.lda, ldb = t.ldb;
#pragma GCC unroll 4
  for (int g = 0; g * kGroup < MR; ++g) a[g] = t.a + g * kGroup * lda;
  const float *b = t.b, *b2 = t.b + t.panel;
  const __mmask16 mask = t.mask;
  const auto step = [&](int i) __attribute__((always_inline)) {
    __m512 bv[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const float* at = (v < 2 ? b : b2) + 16 * (v % 2);
      bv[v] = v == NV - 1 ? _mm512_maskz_loadu_ps(mask, at) : _mm512_loadu_ps(at);
    }
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) {
      const __m512 av = _mm512_set1_ps(a[r / kGroup][(r % kGroup) * lda + i]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[r][v] = _mm512_fmadd_ps(av, bv[v], acc[r][v]);
    }
    b += ldb;
    b2 += ldb;
  };
  const auto advance = [&](int by) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int g = 0; g * kGroup < MR; ++g) {
      a[g] += by;
      asm("" : "+r"(a[g]));  // or the compiler makes one pointer per row and step again, and spills them
    }
  };
  const float* ahead = t.ahead.at;
  const std::size_t lines = t.ahead.lines;
  std::size_t k = t.k;
  for (; k >= 4; k -= 4) {
    for (std::size_t i = 0; i < lines; ++i, ahead += 16) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(ahead + t.panel), _MM_HINT_T1);
    }
    step(0);
    step(1);
    step(2);
    step(3);
    advance(4);
  }
  for (; k > 0; --k) {
    step(0);
    advance(1);
  }
  store(t, acc);
}

using TileFunction = void (*)(const Tile&);
#define MODELFLOW_TILES(rows) \
  { tile<rows, 1>, tile<rows, 2>, tile<rows, 3>, tile<rows, 4> }
constexpr TileFunction kTiles[kMaxRows][4] = {MODELFLOW_TILES(1), MODELFLOW_TILES(2), MODELFLOW_TILES(3),
                                              MODELFLOW_TILES(4), MODELFLOW_TILES(5), MODELFLOW_TILES(6)};
#undef MODELFLOW_TILES

using Use = ops::MatMulAttrs::Residual;

// Activation (and a residual that comes after it) on a tile that was just written.
void finish(const Gemm& g, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns) {
  with_activation(g.activation, [&](auto f) {
    for (std::size_t r = m; r < m + rows; ++r) {
      float* c = g.c + r * g.ldc;
      const float* residual = g.residual && g.residual_use != Use::before ? g.residual + r * g.ldr : nullptr;
      for (std::size_t j = n; j < n + columns; j += 16) {
        const std::size_t left = n + columns - j;
        const __mmask16 mask = first_lanes(left);
        __m512 x = f(_mm512_maskz_loadu_ps(mask, c + j));
        if (residual) {
          const __m512 other = _mm512_maskz_loadu_ps(mask, residual + j);
          x = g.residual_use == Use::times ? _mm512_mul_ps(x, other) : _mm512_add_ps(x, other);
        }
        _mm512_mask_storeu_ps(c + j, mask, x);
      }
    }
  });
}

struct Depth {
  std::size_t begin, size;
  bool first, last;
};

// One column block of up to 64 columns by `rows` rows by `depth`.
void block(const Gemm& g, const Depth& depth, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns,
           const Ahead& ahead) {
  const std::size_t registers = (columns + 15) / 16, tail = columns % 16;
  Tile t{g.a + m * g.lda + depth.begin,
         g.lda,
         g.b + n / kGemmPanel * g.panel + depth.begin * g.ldb,
         g.ldb,
         g.panel,
         g.c + m * g.ldc + n,
         g.ldc,
         depth.size,
         tail ? tail_mask(tail) : static_cast<__mmask16>(0xffff),
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
  kTiles[rows - 1][registers - 1](t);
  const bool more = g.activation.kind != Activation::none || (g.residual && g.residual_use != Use::before);
  if (depth.last && more) finish(g, m, rows, n, columns);
}

Ahead fetch_ahead(const Gemm& g, std::size_t n, std::size_t depth_begin, std::size_t depth_size, std::size_t tiles) {
  const std::size_t steps = depth_size / 4 * tiles;
  if (g.ldb != kGemmPanel || steps == 0) return {};
  const std::size_t all = depth_size * 2;  // a row of a panel is two lines
  return {g.b + n / kGemmPanel * g.panel + depth_begin * g.ldb, (all + steps - 1) / steps, all};
}

}  // namespace

void gemm_avx512(const Gemm& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t rows = m_end - m_begin, chunks = (rows + kMaxChunkRows - 1) / kMaxChunkRows;
  // A single tile of rows reads B once, best in long streams, which the machine fetches by itself (8 % faster).
  const bool streams = rows <= kMaxRows;
  const std::size_t passes = g.k && !streams ? (g.k + kMaxDepth - 1) / kMaxDepth : 1;
  const std::size_t depth_size = ((g.k + passes - 1) / passes + 3) / 4 * 4;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const std::size_t begin = pass * depth_size, size = g.k - begin < depth_size ? g.k - begin : depth_size;
    const Depth depth{begin, size, pass == 0, pass + 1 == passes};
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t m0 = m_begin + rows * chunk / chunks, m1 = m_begin + rows * (chunk + 1) / chunks;
      const std::size_t tiles = (m1 - m0 + kMaxRows - 1) / kMaxRows;
      const std::size_t least = tiles ? (m1 - m0) / tiles : 0, more = m1 - m0 - least * tiles;
      for (std::size_t n = n_begin; n < n_end; n += kMaxColumns) {
        const std::size_t columns = n_end - n < kMaxColumns ? n_end - n : kMaxColumns;
        Ahead ahead = streams                   ? Ahead{}
                      : n + kMaxColumns < n_end ? fetch_ahead(g, n + kMaxColumns, begin, size, tiles)
                      : !depth.last             ? fetch_ahead(g, n_begin, begin + size, size, tiles)
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

void transpose_avx512(const float* x, std::size_t x_step, float* y, std::size_t y_step, std::size_t rows,
                      std::size_t columns) {
  for (std::size_t j = 0; j < columns; j += 16)
    for (std::size_t i = 0; i < rows; i += 16)
      transpose_block(x + i * x_step + j, x_step, y + j * y_step + i, y_step, rows - i, columns - j,
                      first_lanes(rows - i));
}

void pack_b_avx512(const float* b, std::size_t ldb, bool transposed, std::size_t k, std::size_t n, std::size_t first,
                   std::size_t last, float* out) {
  for (std::size_t p = first; p < last; ++p) {
    const std::size_t column = p * kGemmPanel, columns = n - column < kGemmPanel ? n - column : kGemmPanel;
    float* to = out + p * kGemmPanel * k;
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t start = 16 * half, width = columns <= start ? 0 : columns - start < 16 ? columns - start : 16;
      if (transposed) {
        const float* from = b + (column + start) * ldb;
        for (std::size_t i = 0; i < k; i += 16) {
          transpose_block(from + i, ldb, to + i * kGemmPanel + start, kGemmPanel, width, k - i, 0xffff);
        }
      } else {
        const __mmask16 mask = first_lanes(width);
        const float* from = b + column + start;
        for (std::size_t i = 0; i < k; ++i) {
          _mm512_storeu_ps(to + i * kGemmPanel + start, _mm512_maskz_loadu_ps(mask, from + i * ldb));
        }
      }
    }
  }
}

}  // namespace modelflow::cpu
