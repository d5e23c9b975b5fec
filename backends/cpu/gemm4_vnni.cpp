#include "backends/cpu/gemm4_vnni.h"

#include <cstring>

#include "backends/cpu/product_epilogue_avx512.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kMaxRows = 6;
// How far ahead B is fetched when its panels are read once: beyond a page, which the hardware does not cross.
constexpr std::size_t kStream = 4096;
// Scales and zero points in front of each block of a panel.
constexpr std::size_t kHeader = 2 * kVnni4Panel * sizeof(float);

std::size_t block_bytes(std::size_t block) { return kHeader + block / 2 * kVnni4Panel; }

struct Tile {
  const std::int8_t* a;
  std::size_t lda;
  const float *units, *sums;  // of the first row
  std::size_t blocks, block;
  const std::byte* b;
  const std::byte* ahead;  // what to bring into L2 meanwhile, null: nothing
  float* out;              // [rows][kVnni4Panel]
};

MODELFLOW_INLINE __m512i broadcast4(const std::int8_t* at) {
  std::int32_t four;
  std::memcpy(&four, at, sizeof four);
  return _mm512_set1_epi32(four);
}

template <int MR>
__attribute__((noinline)) void tile(const Tile& t) {
  __m512 total[MR][2];
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r) total[r][0] = total[r][1] = _mm512_setzero_ps();
  const __m512i low_half = _mm512_set1_epi8(15);
  const std::size_t lda = t.lda, blocks = t.blocks, bytes = block_bytes(t.block);
  const std::int8_t* a = t.a;
  const std::byte *b = t.b, *ahead = t.ahead;
  for (std::size_t i = 0; i < blocks; ++i, b += bytes) {
    __m512i acc[MR][2];
#pragma GCC unroll 6
    for (int r = 0; r < MR; ++r) acc[r][0] = acc[r][1] = _mm512_setzero_si512();
    if (ahead) {
      for (std::size_t line = 0; line < bytes; line += 64)
        _mm_prefetch(reinterpret_cast<const char*>(ahead + line), _MM_HINT_T1);
      ahead += bytes;
    }
    const std::byte* w = b + kHeader;
    for (std::size_t k = 0; k < t.block; k += 8, a += 8, w += 128) {
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const __m512i both = _mm512_loadu_si512(w + 64 * v);
        const __m512i low = _mm512_and_si512(both, low_half);
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_half);
#pragma GCC unroll 6
        for (int r = 0; r < MR; ++r) {
          acc[r][v] = _mm512_dpbusd_epi32(acc[r][v], low, broadcast4(a + r * lda));
          acc[r][v] = _mm512_dpbusd_epi32(acc[r][v], high, broadcast4(a + r * lda + 4));
        }
      }
    }
    const auto* scale = reinterpret_cast<const float*>(b);
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const __m512 unit = _mm512_loadu_ps(scale + 16 * v), zero = _mm512_loadu_ps(scale + kVnni4Panel + 16 * v);
#pragma GCC unroll 6
      for (int r = 0; r < MR; ++r) {
        const __m512 sum = _mm512_mul_ps(_mm512_cvtepi32_ps(acc[r][v]), _mm512_set1_ps(t.units[r * blocks + i]));
        total[r][v] = _mm512_fmadd_ps(sum, unit, total[r][v]);
        total[r][v] = _mm512_fnmadd_ps(_mm512_set1_ps(t.sums[r * blocks + i]), zero, total[r][v]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < MR; ++r) {
    _mm512_storeu_ps(t.out + r * kVnni4Panel, total[r][0]);
    _mm512_storeu_ps(t.out + r * kVnni4Panel + 16, total[r][1]);
  }
}

using TileFunction = void (*)(const Tile&);
constexpr TileFunction kTiles[kMaxRows] = {tile<1>, tile<2>, tile<3>, tile<4>, tile<5>, tile<6>};

MODELFLOW_INLINE void quantize_block(const float* a, std::size_t block, std::int8_t* out, float* unit, float* sum) {
  const __m512 sign = _mm512_set1_ps(-0.0f);
  __m512 most = _mm512_setzero_ps();
  for (std::size_t j = 0; j < block; j += 16)
    most = _mm512_max_ps(most, _mm512_andnot_ps(sign, _mm512_loadu_ps(a + j)));
  const float largest = _mm512_reduce_max_ps(most), range = largest > 1e-30f ? largest : 1e-30f;
  const __m512 inverse = _mm512_set1_ps(127 / range);
  __m512i steps = _mm512_setzero_si512();
  for (std::size_t j = 0; j < block; j += 16) {
    const __m512i x = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(a + j), inverse));
    steps = _mm512_add_epi32(steps, x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j), _mm512_cvtepi32_epi8(x));
  }
  *unit = range / 127;
  *sum = *unit * static_cast<float>(_mm512_reduce_add_epi32(steps));
}

}  // namespace

void gemm4_vnni(const Vnni4Gemm& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t rows = m_end - m_begin, tiles = (rows + kMaxRows - 1) / kMaxRows;
  const std::size_t panel = g.blocks * block_bytes(g.block);
  alignas(64) float sums[kMaxRows * kVnni4Panel];
  for (std::size_t n = n_begin; n < n_end; n += kVnni4Panel) {
    const std::byte* b = g.b + n / kVnni4Panel * panel;
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t m = m_begin + rows * i / tiles, height = m_begin + rows * (i + 1) / tiles - m;
      const std::byte* ahead = i > 0 ? nullptr : b + (tiles == 1 ? kStream : panel);
      kTiles[height - 1](
          {g.a + m * g.lda, g.lda, g.units + m * g.blocks, g.sums + m * g.blocks, g.blocks, g.block, b, ahead, sums});
      finish(g.out, m, height, n, kVnni4Panel,
             [&](std::size_t r, std::size_t v, __mmask16) { return _mm512_load_ps(sums + r * kVnni4Panel + 16 * v); });
    }
  }
}

std::size_t packed_b4_vnni_bytes(std::size_t n, std::size_t blocks, std::size_t block) {
  return (n + kVnni4Panel - 1) / kVnni4Panel * blocks * block_bytes(block);
}

void pack_b4_vnni(const Weights4& w, std::byte* out) {
  std::memset(out, 0, packed_b4_vnni_bytes(w.n, w.blocks, w.block));
  const std::size_t bytes = block_bytes(w.block);
  for (std::size_t column = 0; column < w.n; ++column) {
    const std::size_t c = column % kVnni4Panel;
    for (std::size_t i = 0; i < w.blocks; ++i) {
      std::byte* to = out + (column / kVnni4Panel * w.blocks + i) * bytes;
      const float scale = w.scale[column * w.blocks + i];
      auto* header = reinterpret_cast<float*>(to);
      header[c] = scale;
      header[kVnni4Panel + c] = scale * (w.zero ? w.zero[column * w.blocks + i] : 8);
      const std::uint8_t* from = w.b + (column * w.blocks + i) * w.block / 2;
      const auto step = [&](std::size_t k) { return k % 2 ? from[k / 2] >> 4 : from[k / 2] & 15; };
      for (std::size_t k = 0; k < w.block; k += 8) {
        std::byte* four = to + kHeader + k / 8 * 128 + 4 * c;
        for (std::size_t j = 0; j < 4; ++j) four[j] = static_cast<std::byte>(step(k + j) | step(k + 4 + j) << 4);
      }
    }
  }
}

void quantize_blocks_vnni(const float* a, std::size_t rows, std::size_t blocks, std::size_t block, std::int8_t* out,
                          std::size_t ldo, float* units, float* sums) {
  for (std::size_t r = 0; r < rows; ++r, out += ldo) {
    for (std::size_t i = 0; i < blocks; ++i, a += block) quantize_block(a, block, out + i * block, units++, sums++);
  }
}

}  // namespace modelflow::cpu
