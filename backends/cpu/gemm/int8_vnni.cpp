// Matrix products of 8-bit numbers on VNNI: tiles of 14 rows x 32 columns of sums in registers.
#include "backends/cpu/gemm/int8_vnni.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/epilogue_avx512.h"
#include "backends/cpu/gemm/f32.h"

// Why 14 x 2: of 64 bytes of B and 4 of A that a register and a broadcast bring, few enough come from L2 (13 bytes per
// cycle) that a panel of B need not fit in L1, so k is never cut and sums stay in registers for its whole extent.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kSteps = kVnniDepth / 4;
// How far ahead B is fetched when its panels are read once: beyond a page, which the hardware does not cross.
constexpr std::size_t kStream = 4096;

/// The piece of C that a tile gives, and what goes into it.
struct Result {
  float* c;
  const float* residual;  // null: none
  std::size_t row;        // floats from one row of both to the next
  const float *units, *row_scale;
  const float* bias;  // null: none
  __mmask16 lanes[2];
};

struct Tile {
  const std::uint8_t* a;  // its panel
  const std::byte* b;
  std::size_t k;                       // padded
  const std::int32_t* base;            // what the sums begin with, per column
  const std::int32_t *row_sum, *zero;  // of A per row and of B per column; null: B has none
  std::int32_t* sums;                  // [rows][kVnniPanel], when more than additions is to come
  const std::byte* ahead;              // what to bring into L2 meanwhile
  bool fetch;                          // or not
  Result y;
};

MODELFLOW_INLINE __m512i broadcast4(const std::uint8_t* at) {
  std::int32_t four;
  std::memcpy(&four, at, sizeof four);
  return _mm512_set1_epi32(four);
}

std::intptr_t address(const float* at) { return reinterpret_cast<std::intptr_t>(at); }

// (A - za) (B - zb) = (A - za) B - (sum of A - za) zb
template <int MR, int SPLIT>
MODELFLOW_INLINE void subtract_zeros(const Tile& t, __m512i (&acc)[SPLIT][MR][2]) {
#pragma GCC unroll 14
  for (int r = 0; r < MR; ++r) {
    const __m512i sum = _mm512_set1_epi32(t.row_sum[r]);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      acc[0][r][v] = _mm512_sub_epi32(acc[0][r][v], _mm512_mullo_epi32(sum, _mm512_loadu_si512(t.zero + 16 * v)));
  }
}

template <int MR, int SPLIT>
MODELFLOW_INLINE void add_up(const Tile& t, __m512i (&acc)[SPLIT][MR][2]) {
#pragma GCC unroll 4
  for (int s = 1; s < SPLIT; ++s) {
#pragma GCC unroll 14
    for (int r = 0; r < MR; ++r) {
      acc[0][r][0] = _mm512_add_epi32(acc[0][r][0], acc[s][r][0]);
      acc[0][r][1] = _mm512_add_epi32(acc[0][r][1], acc[s][r][1]);
    }
  }
  if (t.zero) subtract_zeros<MR, SPLIT>(t, acc);
}

// Sums to floats and out with them, where nothing but additions is left to do.
template <int MR, int SPLIT>
MODELFLOW_INLINE void store(const Result& y, __m512i (&acc)[SPLIT][MR][2]) {
  const __mmask16 low = y.lanes[0], high = y.lanes[1];
  const __m512 unit0 = _mm512_maskz_loadu_ps(low, y.units), unit1 = _mm512_maskz_loadu_ps(high, y.units + 16);
  __m512 bias0 = _mm512_setzero_ps(), bias1 = bias0;
  if (y.bias) bias0 = _mm512_maskz_loadu_ps(low, y.bias), bias1 = _mm512_maskz_loadu_ps(high, y.bias + 16);
  float* c = y.c;
  const float* residual = y.residual;
#pragma GCC unroll 14
  for (int r = 0; r < MR; ++r, c += y.row) {
    const __m512 scale = _mm512_set1_ps(y.row_scale[r]);
    __m512 x0 = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(acc[0][r][0]), scale), unit0, bias0);
    __m512 x1 = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(acc[0][r][1]), scale), unit1, bias1);
    if (residual) {
      x0 = _mm512_add_ps(x0, _mm512_maskz_loadu_ps(low, residual));
      x1 = _mm512_add_ps(x1, _mm512_maskz_loadu_ps(high, residual + 16));
      residual += y.row;
    }
    _mm512_mask_storeu_ps(c, low, x0);
    _mm512_mask_storeu_ps(c + 16, high, x1);
  }
}

// Few rows have few sums: with SPLIT > 1 steps of k go to sums of their own, or each would wait for the one before.
// FETCH lines are brought into L2 per kVnniDepth of k; a loop for that would cost a tenth of the speed.
template <int MR, int SPLIT, int FETCH>
__attribute__((noinline)) void tile(const Tile& t) {
  __m512i acc[SPLIT][MR][2];
#pragma GCC unroll 14
  for (int r = 0; r < MR; ++r) {
    acc[0][r][0] = _mm512_loadu_si512(t.base);
    acc[0][r][1] = _mm512_loadu_si512(t.base + 16);
#pragma GCC unroll 4
    for (int s = 1; s < SPLIT; ++s) acc[s][r][0] = acc[s][r][1] = _mm512_setzero_si512();
  }
  const std::uint8_t* a = t.a;
  const std::byte* b = t.b;
  const auto step = [&](int i) __attribute__((always_inline)) {
    const __m512i b0 = _mm512_loadu_si512(b + 128 * i), b1 = _mm512_loadu_si512(b + 128 * i + 64);
#pragma GCC unroll 14
    for (int r = 0; r < MR; ++r) {
      const __m512i av = broadcast4(a + 4 * (MR * i + r));
      acc[i % SPLIT][r][0] = _mm512_dpbusd_epi32(acc[i % SPLIT][r][0], av, b0);
      acc[i % SPLIT][r][1] = _mm512_dpbusd_epi32(acc[i % SPLIT][r][1], av, b1);
    }
  };
  const std::byte* ahead = t.ahead;
  const std::size_t stride = t.fetch ? 64 * FETCH : 0;
  // C is written, and a residual read, 128 bytes per row, far apart: nothing but this brings them in time.
  const float* c = t.y.c;
  const std::intptr_t residual = t.y.residual ? address(t.y.residual) - address(c) : 0;  // from C: saves a register
  int left = MR;
  for (std::size_t k = t.k; k > 0; k -= kVnniDepth) {
#pragma GCC unroll 8
    for (int i = 0; i < FETCH; ++i) _mm_prefetch(reinterpret_cast<const char*>(ahead + 64 * i), _MM_HINT_T1);
    ahead += stride;
    if (left > 0) {
      _mm_prefetch(reinterpret_cast<const char*>(c) + residual, _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(c) + residual + 64, _MM_HINT_T0);
      asm volatile("prefetchw %0" ::"m"(c[0]));
      asm volatile("prefetchw %0" ::"m"(c[16]));
      c += t.y.row;
      --left;
    }
    step(0);
    step(1);
    step(2);
    step(3);
    a += 4 * MR * kSteps;
    b += 128 * kSteps;
  }
  add_up<MR, SPLIT>(t, acc);
  if (!t.sums) return store<MR, SPLIT>(t.y, acc);
#pragma GCC unroll 14
  for (int r = 0; r < MR; ++r) {
    _mm512_storeu_si512(t.sums + r * kVnniPanel, acc[0][r][0]);
    _mm512_storeu_si512(t.sums + r * kVnniPanel + 16, acc[0][r][1]);
  }
}

using TileFunction = void (*)(const Tile&);
// Tiles by rows: the only one of its panel, which reads B as a stream; one that fetches its half of the next panel; one
// of many, with an eighth.
constexpr TileFunction kOnly[kVnniRows] = {
    tile<1, 4, 8>, tile<2, 4, 8>, tile<3, 2, 8>,  tile<4, 2, 8>,  tile<5, 1, 8>,  tile<6, 1, 8>,  tile<7, 1, 8>,
    tile<8, 1, 8>, tile<9, 1, 8>, tile<10, 1, 8>, tile<11, 1, 8>, tile<12, 1, 8>, tile<13, 1, 8>, tile<14, 1, 8>};
constexpr TileFunction kHalf[] = {tile<7, 1, 4>,  tile<8, 1, 4>,  tile<9, 1, 4>,  tile<10, 1, 4>,
                                  tile<11, 1, 4>, tile<12, 1, 4>, tile<13, 1, 4>, tile<14, 1, 4>};
constexpr TileFunction kEighth[] = {tile<7, 1, 1>,  tile<8, 1, 1>,  tile<9, 1, 1>,  tile<10, 1, 1>,
                                    tile<11, 1, 1>, tile<12, 1, 1>, tile<13, 1, 1>, tile<14, 1, 1>};

TileFunction tile_of(std::size_t rows, std::size_t number, std::size_t tiles) {
  if (tiles == 1) return kOnly[rows - 1];  // with more than one all have at least 7 rows
  return tiles < 8 && number < 2 ? kHalf[rows - 7] : kEighth[rows - 7];
}

/// Panels of A.
struct Part {
  std::size_t begin, end;
};

// One panel of B by some panels of A.
void multiply(const VnniGemm& g, Part part, std::size_t n, bool last) {
  const std::size_t depth = vnni_depth(g.rows.k), bytes = depth * kVnniPanel;
  const std::byte* b = g.b + n / kVnniPanel * bytes;
  alignas(64) std::int32_t base[kVnniPanel];
  start_of_sums(g, depth, n, base);
  alignas(64) std::int32_t sums[kVnniRows * kVnniPanel];
  const std::size_t tiles = part.end - part.begin;
  const std::byte* ahead = b + (tiles == 1 ? kStream : bytes);
  const std::size_t fetching = tiles == 1 ? 1 : last ? 0 : tiles < 8 ? 2 : 8;
  const bool adds = g.out.only_adds();
  const TwoRegisters columns(n, g.n);
  const __m512 units[2] = {columns.load(g.column_scale + n, 0), columns.load(g.column_scale + n, 1)};
  for (std::size_t i = 0; i < tiles; ++i) {
    const std::size_t m = g.rows.begin(part.begin + i), height = g.rows.begin(part.begin + i + 1) - m;
    const std::size_t at = m * g.n + n;
    const Result y{g.out.c + at,
                   g.out.residual ? g.out.residual + at : nullptr,
                   g.n,
                   g.column_scale + n,
                   g.row_scale + m,
                   g.out.bias ? g.out.bias + n : nullptr,
                   {columns.lanes[0], columns.lanes[1]}};
    tile_of(height, i,
            tiles)({g.a + m * depth, b, depth, base, g.row_sum ? g.row_sum + m : nullptr,
                    g.column_zero ? g.column_zero + n : nullptr, adds ? nullptr : sums, ahead, i < fetching, y});
    if (i < fetching) ahead += bytes / fetching;
    if (adds) continue;
    finish(
        g.out, m, height, n, [&](std::size_t r, int v) __attribute__((always_inline)) {  // the sums lie in L1
          const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + r * kVnniPanel + 16 * v));
          return _mm512_mul_ps(_mm512_mul_ps(sum, _mm512_set1_ps(g.row_scale[m + r])), units[v]);
        });
  }
}

// One panel of four rows of k in the order of vpdpbusd: the four bytes of a column side by side.
void interleave(const std::int8_t* b, std::size_t ldb, std::size_t rows, __mmask32 lanes, std::byte* out) {
  __m256i r[4];
  for (std::size_t i = 0; i < 4; ++i)
    r[i] = i < rows ? _mm256_maskz_loadu_epi8(lanes, b + i * ldb) : _mm256_setzero_si256();
  const __m256i low01 = _mm256_unpacklo_epi8(r[0], r[1]), high01 = _mm256_unpackhi_epi8(r[0], r[1]);
  const __m256i low23 = _mm256_unpacklo_epi8(r[2], r[3]), high23 = _mm256_unpackhi_epi8(r[2], r[3]);
  const __m256i c0 = _mm256_unpacklo_epi16(low01, low23), c4 = _mm256_unpackhi_epi16(low01, low23);
  const __m256i c8 = _mm256_unpacklo_epi16(high01, high23), c12 = _mm256_unpackhi_epi16(high01, high23);
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(c0, c4, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(c8, c12, 0x20));
  _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(c0, c4, 0x31));
  _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(c8, c12, 0x31));
}

// All panels of [k, n], some rows of each before the next ones, which are read as streams then.
void interleave_rows(const std::int8_t* b, std::size_t k, std::size_t depth, std::size_t n, std::byte* out) {
  constexpr std::size_t kRows = 8;
  for (std::size_t begin = 0; begin < depth; begin += kRows) {
    for (std::size_t p = 0; p < vnni_panels(n); ++p) {
      const std::size_t column = p * kVnniPanel, columns = n - column < kVnniPanel ? n - column : kVnniPanel;
      const __mmask32 lanes = columns < 32 ? static_cast<__mmask32>((1u << columns) - 1) : 0xffffffffu;
      for (std::size_t i = begin; i < begin + kRows && i < depth; i += 4) {
        const std::size_t rows = i < k ? k - i : 0;
        interleave(b + (rows ? i * n : 0) + column, n, rows < 4 ? rows : 4, lanes, out + (p * depth + i) * kVnniPanel);
      }
    }
  }
}

// The same from columns that lie in rows of k: where these are whole words, a transpose of words.
void gather(const std::int8_t* b, std::size_t k, std::size_t depth, std::size_t columns, std::byte* out) {
  if (k != depth || columns != kVnniPanel) std::memset(out, 0, depth * kVnniPanel);
  if (k % 4 == 0) {
    return f32_avx512.transpose(reinterpret_cast<const float*>(b), k / 4, reinterpret_cast<float*>(out), kVnniPanel,
                                columns, k / 4);
  }
  for (std::size_t j = 0; j < columns; ++j) {
    for (std::size_t i = 0; i < k; i += 4)
      std::memcpy(out + i * kVnniPanel + 4 * j, b + j * k + i, k - i < 4 ? k - i : 4);
  }
}

}  // namespace

void gemm_vnni(const VnniGemm& g, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t bytes = g.rows.offset(end) - g.rows.offset(begin), panels = end - begin;
  const std::size_t chunks = std::min((bytes + g.near - 1) / g.near, panels);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const Part part{begin + panels * chunk / chunks, begin + panels * (chunk + 1) / chunks};
    for (std::size_t n = n_begin; n < n_end; n += kVnniPanel) multiply(g, part, n, n + kVnniPanel >= n_end);
  }
}

void pack_b_vnni(const std::int8_t* b, bool transposed, std::size_t k, std::size_t depth, std::size_t n,
                 std::byte* out) {
  const std::size_t bytes = depth * kVnniPanel;
  auto* sums = reinterpret_cast<std::int32_t*>(out + vnni_panels(n) * bytes);
  if (!transposed) interleave_rows(b, k, depth, n, out);
  for (std::size_t p = 0; p < vnni_panels(n); ++p) {
    const std::size_t column = p * kVnniPanel, columns = n - column < kVnniPanel ? n - column : kVnniPanel;
    std::byte* to = out + p * bytes;
    if (transposed) gather(b + column * k, k, depth, columns, to);
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i low = _mm512_setzero_si512(), high = low;
    for (std::size_t i = 0; i < depth; i += 4) {
      low = _mm512_dpbusd_epi32(low, ones, _mm512_loadu_si512(to + i * kVnniPanel));
      high = _mm512_dpbusd_epi32(high, ones, _mm512_loadu_si512(to + i * kVnniPanel + 64));
    }
    _mm512_storeu_si512(sums + column, low);
    _mm512_storeu_si512(sums + column + 16, high);
  }
}

}  // namespace modelflow::cpu
