#include "backends/cpu/activation_avx512.h"
#include "backends/cpu/gemm.h"

// Why intrinsics: on Cascade Lake this tile keeps 138 to 143 of 150 GFLOP/s per core with B in L2 (oneDNN's brgemm
// ukernel: 129), needs no code generation when a session is loaded, takes A where it lies, and finishes bias, residual
// and activation while the tile is in L1.
namespace modelflow::cpu {
namespace {

// Rows per tile. 12 x 2 registers of C, 2 of B, 1 of A; the compiler still finds registers for 12 row pointers.
constexpr std::size_t kMaxRows = 12;
// Up to here four registers per row: B is what limits few rows.
constexpr std::size_t kWideRows = 6;
// Extent of k per pass: a panel of B (64 KiB) and 128 rows of A (256 KiB) stay in a 1 MiB L2 together with C.
constexpr std::size_t kMaxDepth = 512;
constexpr std::size_t kMaxChunkRows = 144;

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
};

template <int V, int NV>
MODELFLOW_INLINE __mmask16 lanes(const Tile& t) {
  return V == NV - 1 ? t.mask : static_cast<__mmask16>(0xffff);
}

template <int MR, int NV>
MODELFLOW_INLINE void store(const Tile& t, const __m512 (&acc)[MR][NV]) {
  const __m512 scale = _mm512_set1_ps(t.scale);
  const auto column = [&]<int V>() __attribute__((always_inline)) {
    const __mmask16 mask = lanes<V, NV>(t);
    const __m512 bias = t.bias ? _mm512_maskz_loadu_ps(mask, t.bias + 16 * V) : _mm512_setzero_ps();
    for (int r = 0; r < MR; ++r) {
      __m512 x = _mm512_fmadd_ps(acc[r][V], scale, bias);
      if (t.base) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, t.base + r * t.base_ld + 16 * V));
      _mm512_mask_storeu_ps(t.c + r * t.ldc + 16 * V, mask, x);
    }
  };
  column.template operator()<0>();
  if constexpr (NV > 1) column.template operator()<1>();
  if constexpr (NV > 2) column.template operator()<2>();
  if constexpr (NV > 3) column.template operator()<3>();
}

template <int MR, int NV>
__attribute__((noinline)) void tile(const Tile& t) {
  __m512 acc[MR][NV];
  for (int r = 0; r < MR; ++r) {
    for (int v = 0; v < NV; ++v) acc[r][v] = _mm512_setzero_ps();
  }
  const float *a = t.a, *b = t.b;
  const std::size_t lda = t.lda, ldb = t.ldb, panel = t.panel;
  const __mmask16 mask = t.mask;
  const auto step = [&](std::size_t i) __attribute__((always_inline)) {
    __m512 bv[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const float* at = b + (v / 2) * panel + 16 * (v % 2);
      bv[v] = v == NV - 1 ? _mm512_maskz_loadu_ps(mask, at) : _mm512_loadu_ps(at);
    }
#pragma GCC unroll 12
    for (int r = 0; r < MR; ++r) {
      const __m512 av = _mm512_set1_ps(a[r * lda + i]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[r][v] = _mm512_fmadd_ps(av, bv[v], acc[r][v]);
    }
    b += ldb;
  };
  std::size_t k = t.k;
  for (; k >= 4; k -= 4, a += 4) {
    step(0);
    step(1);
    step(2);
    step(3);
  }
  for (; k > 0; --k, ++a) step(0);
  store<MR, NV>(t, acc);
}

using TileFunction = void (*)(const Tile&);
#define MODELFLOW_TILES(rows) \
  { tile<rows, 1>, tile<rows, 2> }
constexpr TileFunction kTiles[kMaxRows][2] = {MODELFLOW_TILES(1),  MODELFLOW_TILES(2),  MODELFLOW_TILES(3),
                                              MODELFLOW_TILES(4),  MODELFLOW_TILES(5),  MODELFLOW_TILES(6),
                                              MODELFLOW_TILES(7),  MODELFLOW_TILES(8),  MODELFLOW_TILES(9),
                                              MODELFLOW_TILES(10), MODELFLOW_TILES(11), MODELFLOW_TILES(12)};
#undef MODELFLOW_TILES
#define MODELFLOW_WIDE(rows) \
  { tile<rows, 3>, tile<rows, 4> }
constexpr TileFunction kWideTiles[kWideRows][2] = {MODELFLOW_WIDE(1), MODELFLOW_WIDE(2), MODELFLOW_WIDE(3),
                                                   MODELFLOW_WIDE(4), MODELFLOW_WIDE(5), MODELFLOW_WIDE(6)};
#undef MODELFLOW_WIDE

// Activation (and a residual that comes after it) on a tile that was just written.
void finish(const Gemm& g, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns) {
  with_activation(g.activation, [&](auto f) {
    for (std::size_t r = m; r < m + rows; ++r) {
      float* c = g.c + r * g.ldc;
      const float* residual = g.residual_after && g.residual ? g.residual + r * g.ldr : nullptr;
      for (std::size_t j = n; j < n + columns; j += 16) {
        const std::size_t left = n + columns - j;
        const __mmask16 mask = left < 16 ? tail_mask(left) : static_cast<__mmask16>(0xffff);
        __m512 x = f(_mm512_maskz_loadu_ps(mask, c + j));
        if (residual) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, residual + j));
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
void block(const Gemm& g, const Depth& depth, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns) {
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
         g.scale};
  if (!depth.first) {
    t.base = t.c;
    t.base_ld = g.ldc;
  } else if (g.residual && !g.residual_after) {
    t.base = g.residual + m * g.ldr + n;
    t.base_ld = g.ldr;
  }
  (registers > 2 ? kWideTiles[rows - 1][registers - 3] : kTiles[rows - 1][registers - 1])(t);
  const bool more = g.activation.kind != Activation::none || (g.residual && g.residual_after);
  if (depth.last && more) finish(g, m, rows, n, columns);
}

// 16 x 16 floats: rows of `in` become columns of `out`; `rows` and `columns` may be less.
MODELFLOW_INLINE void transpose16(const float* in, std::size_t ldi, std::size_t rows, std::size_t columns, float* out,
                                  std::size_t ldo, __mmask16 written) {
  const __mmask16 read = columns < 16 ? tail_mask(columns) : static_cast<__mmask16>(0xffff);
  __m512 r[16], s[16];
  for (std::size_t i = 0; i < 16; ++i)
    r[i] = i < rows ? _mm512_maskz_loadu_ps(read, in + i * ldi) : _mm512_setzero_ps();
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  const auto low = [](__m512 x, __m512 y) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  const auto high = [](__m512 x, __m512 y) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  for (int i = 0; i < 16; i += 4) {
    r[i] = low(s[i], s[i + 2]);
    r[i + 1] = high(s[i], s[i + 2]);
    r[i + 2] = low(s[i + 1], s[i + 3]);
    r[i + 3] = high(s[i + 1], s[i + 3]);
  }
  // r[4g + c] holds, in its 128-bit lane L, column 4L + c of rows 4g .. 4g+3.
  for (int c = 0; c < 4; ++c) {
    const __m512 even_low = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88),
                 odd_low = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xdd);
    const __m512 even_high = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
    const __m512 odd_high = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xdd);
    s[c] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
    s[8 + c] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
    s[4 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
    s[12 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    if (i < columns) _mm512_mask_storeu_ps(out + i * ldo, written, s[i]);
  }
}

}  // namespace

void gemm_avx512(const Gemm& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t passes = g.k ? (g.k + kMaxDepth - 1) / kMaxDepth : 1;
  const std::size_t depth_size = ((g.k + passes - 1) / passes + 3) / 4 * 4;
  const std::size_t chunks = (m_end - m_begin + kMaxChunkRows - 1) / kMaxChunkRows;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const std::size_t begin = pass * depth_size, size = g.k - begin < depth_size ? g.k - begin : depth_size;
    const Depth depth{begin, size, pass == 0, pass + 1 == passes};
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t m0 = m_begin + (m_end - m_begin) * chunk / chunks;
      const std::size_t m1 = m_begin + (m_end - m_begin) * (chunk + 1) / chunks;
      const std::size_t tiles = (m1 - m0 + kMaxRows - 1) / kMaxRows;
      const std::size_t width = m1 - m0 <= kWideRows ? 2 * kGemmPanel : kGemmPanel;
      for (std::size_t n = n_begin; n < n_end; n += width) {
        const std::size_t columns = n_end - n < width ? n_end - n : width;
        for (std::size_t i = 0; i < tiles; ++i) {  // equal tiles: 32 rows are 11 + 11 + 10
          const std::size_t m = m0 + (m1 - m0) * i / tiles, next = m0 + (m1 - m0) * (i + 1) / tiles;
          block(g, depth, m, next - m, n, columns);
        }
      }
    }
  }
}

void transpose_avx512(const float* in, std::size_t ldi, std::size_t rows, std::size_t columns, float* out,
                      std::size_t ldo) {
  for (std::size_t r = 0; r < rows; r += 16) {
    const std::size_t height = rows - r < 16 ? rows - r : 16;
    const __mmask16 written = height < 16 ? tail_mask(height) : static_cast<__mmask16>(0xffff);
    for (std::size_t c = 0; c < columns; c += 16) {
      const std::size_t width = columns - c < 16 ? columns - c : 16;
      transpose16(in + r * ldi + c, ldi, height, width, out + c * ldo + r, ldo, written);
    }
  }
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
          transpose16(from + i, ldb, width, k - i < 16 ? k - i : 16, to + i * kGemmPanel + start, kGemmPanel, 0xffff);
        }
      } else {
        const __mmask16 mask = width < 16 ? tail_mask(width) : static_cast<__mmask16>(0xffff);
        const float* from = b + column + start;
        for (std::size_t i = 0; i < k; ++i) {
          _mm512_storeu_ps(to + i * kGemmPanel + start, _mm512_maskz_loadu_ps(mask, from + i * ldb));
        }
      }
    }
  }
}

}  // namespace modelflow::cpu
