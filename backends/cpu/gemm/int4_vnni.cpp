// Matrix products by weights of 4 bits on VNNI: blocks of k are summed in integers, and the blocks in float32.
#include <cstring>

#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/gemm/epilogue_avx512.h"
#include "backends/cpu/gemm/int4.h"
#include "backends/cpu/vector/magnitudes_avx512.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kMaxRows = 6;
// How far ahead B is fetched when its panels are read once: beyond a page, which the hardware does not cross.
constexpr std::size_t kStream = 4096;

struct Tile {
  const std::int8_t* a;
  std::size_t lda;
  const BlockSteps* steps;  // of the first row
  std::size_t blocks, block;
  const std::byte* b;
  const std::byte* ahead;  // what to bring into L2 meanwhile, null: nothing
  float* out;              // [rows][kPanel4]
};

MODELFLOW_INLINE __m512i broadcast4(const std::int8_t* at) {
  std::int32_t four;
  std::memcpy(&four, at, sizeof four);
  return _mm512_set1_epi32(four);
}

// The total of a block as what it is in float32.
template <int MR, bool ZEROS>
MODELFLOW_INLINE void add_block(const __m512i (&acc)[MR][2], const float* scale, const BlockSteps* steps,
                                std::size_t blocks, __m512 (&total)[MR][2]) {
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    const __m512 unit = _mm512_loadu_ps(scale + 16 * v);
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) {
      const __m512 sum = _mm512_mul_ps(_mm512_cvtepi32_ps(acc[r][v]), _mm512_set1_ps(steps[r * blocks].unit));
      total[r][v] = _mm512_fmadd_ps(sum, unit, total[r][v]);
      if (!ZEROS) continue;
      const __m512 zero = _mm512_loadu_ps(scale + kPanel4 + 16 * v);
      total[r][v] = _mm512_fnmadd_ps(_mm512_set1_ps(steps[r * blocks].sum), zero, total[r][v]);
    }
  }
}

template <int MR, bool ZEROS>
__attribute__((noinline)) void tile(const Tile& t) {
  __m512 total[MR][2];
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r) total[r][0] = total[r][1] = _mm512_setzero_ps();
  const __m512i low_half = _mm512_set1_epi8(15);
  const std::size_t lda = t.lda, blocks = t.blocks, bytes = block4_bytes(t.block, ZEROS);
  const std::int8_t* a = t.a;
  const std::byte *b = t.b, *ahead = t.ahead;
  for (std::size_t i = 0; i < blocks; ++i, b += bytes) {
    __m512i acc[MR][2];
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) {
      acc[r][0] = acc[r][1] = ZEROS ? _mm512_setzero_si512() : _mm512_set1_epi32(t.steps[r * blocks + i].eights);
      asm("" : "+v"(acc[r][0]), "+v"(acc[r][1]));  // or the loop below copies every sum at every step
    }
    if (ahead) {
      for (std::size_t line = 0; line < bytes; line += 64)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + line), _MM_HINT_T1);
      ahead += bytes;
    }
    const std::byte* w = b + header4_bytes(ZEROS);
    for (std::size_t k = 0; k < t.block; k += 8, a += 8, w += 128) {
      const __m512i both[2] = {_mm512_loadu_si512(w), _mm512_loadu_si512(w + 64)};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m512i w0 = _mm512_and_si512(half ? _mm512_srli_epi16(both[0], 4) : both[0], low_half);
        const __m512i w1 = _mm512_and_si512(half ? _mm512_srli_epi16(both[1], 4) : both[1], low_half);
#pragma GCC unroll 6
        for (int r = 0; r < MR; ++r) {
          const __m512i four = broadcast4(a + r * lda + 4 * half);
          acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], w0, four);
          acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], w1, four);
          asm("" : "+v"(acc[r][0]), "+v"(acc[r][1]));
        }
      }
    }
    add_block<MR, ZEROS>(acc, reinterpret_cast<const float*>(b), t.steps + i, blocks, total);
  }
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r) {
    _mm512_storeu_ps(t.out + r * kPanel4, total[r][0]);
    _mm512_storeu_ps(t.out + r * kPanel4 + 16, total[r][1]);
  }
}

using TileFunction = void (*)(const Tile&);
constexpr TileFunction kTiles[2][kMaxRows] = {
    {tile<1, false>, tile<2, false>, tile<3, false>, tile<4, false>, tile<5, false>, tile<6, false>},
    {tile<1, true>, tile<2, true>, tile<3, true>, tile<4, true>, tile<5, true>, tile<6, true>}};

MODELFLOW_INLINE void quantize_block(const float* a, std::size_t block, std::int8_t* out, BlockSteps& of) {
  __m512i most = _mm512_setzero_si512();
  for (std::size_t j = 0; j < block; j += 16) most = _mm512_max_epi32(most, sizes(_mm512_loadu_ps(a + j)));
  const float largest = largest_of(most), range = largest < 1e-30f ? 1e-30f : largest;
  const __m512 inverse = _mm512_set1_ps(127 / range);
  __m512i steps = _mm512_setzero_si512();
  for (std::size_t j = 0; j < block; j += 16) {
    const __m512i x = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(a + j), inverse));
    steps = _mm512_add_epi32(steps, x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j), _mm512_cvtepi32_epi8(x));
  }
  const std::int32_t sum = _mm512_reduce_add_epi32(steps);
  const float unit = step_size(range);
  // Of what is no number the sum means nothing, and may be too large for the factor.
  of = {unit, unit * static_cast<float>(sum), static_cast<std::int32_t>(-8U * static_cast<std::uint32_t>(sum))};
}

void multiply(const Gemm4& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t rows = m_end - m_begin, tiles = (rows + kMaxRows - 1) / kMaxRows;
  const std::size_t panel = g.blocks * block4_bytes(g.block, g.zero_points);
  alignas(64) float sums[kMaxRows * kPanel4];
  for (std::size_t n = n_begin; n < n_end; n += kPanel4) {
    const std::byte* b = g.b + n / kPanel4 * panel;
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t m = m_begin + rows * i / tiles, height = m_begin + rows * (i + 1) / tiles - m;
      const std::byte* ahead = i > 0 ? nullptr : b + (tiles == 1 ? kStream : panel);
      kTiles[g.zero_points][height - 1](
          {g.a + m * g.lda, g.lda, g.steps + m * g.blocks, g.blocks, g.block, b, ahead, sums});
      finish(
          g.out, m, height, n, [&](std::size_t r, int v) __attribute__((always_inline)) {
            return _mm512_load_ps(sums + r * kPanel4 + 16 * v);
          });
    }
  }
}

void quantize_blocks(const float* a, std::size_t rows, std::size_t blocks, std::size_t block, std::int8_t* out,
                     std::size_t ldo, BlockSteps* steps) {
  for (std::size_t r = 0; r < rows; ++r, out += ldo) {
    for (std::size_t i = 0; i < blocks; ++i, a += block) quantize_block(a, block, out + i * block, *steps++);
  }
}

}  // namespace

const Code4 code4_vnni = {multiply, quantize_blocks};

}  // namespace modelflow::cpu
