// Products by weights in bfloat16, which are widened to float32 in registers.
#include "backends/cpu/gemm/bf16_avx512.h"

#include "backends/cpu/gemm/epilogue_avx512.h"

// Why intrinsics: a product with few rows waits for its weights, so what counts is to read each of their bytes once and
// in order; compilers do not find the two instructions that widen a register.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kMaxRows = 8;
/// Bytes ahead of the reader that are fetched: what memory sends in the time that it takes to answer.
constexpr std::size_t kAhead = 2048;

struct Wide {
  __m512 low, high;  // columns 0..15 and 16..31 of the panel
};

MODELFLOW_INLINE Wide widen(const std::uint16_t* at) {
  const __m512i both = _mm512_loadu_si512(at);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(both, 16)), _mm512_castsi512_ps(_mm512_and_si512(both, upper))};
}

struct Tile {
  const float* a;
  std::size_t lda;
  const std::uint16_t* b;
  std::size_t k;
  float* sums;  // kBf16Panel per row
};

/// One panel by MR rows. Of few rows two sums per column take turns, or each addition would wait for the one before.
template <int MR>
void tile(const Tile& t) {
  constexpr int kTurns = MR < 4 ? 2 : 1;
  __m512 sums[MR][kTurns][2];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 2
    for (int turn = 0; turn < kTurns; ++turn) sums[r][turn][0] = sums[r][turn][1] = _mm512_setzero_ps();
  }
  const std::size_t lda = t.lda;
  const float* a = t.a;
  const std::uint16_t* b = t.b;
  const auto step = [&](int i) __attribute__((always_inline)) {
    const Wide w = widen(b + static_cast<std::size_t>(i) * kBf16Panel);
    const int turn = i % kTurns;
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r) {
      const __m512 x = _mm512_set1_ps(a[static_cast<std::size_t>(r) * lda + i]);
      sums[r][turn][0] = _mm512_fmadd_ps(x, w.low, sums[r][turn][0]);
      sums[r][turn][1] = _mm512_fmadd_ps(x, w.high, sums[r][turn][1]);
    }
  };
  for (std::size_t k = t.k / 2; k > 0; --k, a += 2, b += 2 * kBf16Panel) {
    _mm_prefetch(reinterpret_cast<const char*>(b) + kAhead, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(b) + kAhead + 64, _MM_HINT_T0);
    step(0);
    step(1);
  }
  if (t.k % 2) step(0);
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v)
      _mm512_store_ps(t.sums + r * kBf16Panel + 16 * v,
                      _mm512_add_ps(sums[r][0][v], kTurns > 1 ? sums[r][kTurns - 1][v] : _mm512_setzero_ps()));
  }
}

}  // namespace

void gemm_bf16_avx512(const Bf16Gemm& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin,
                      std::size_t n_end) {
  constexpr void (*kTiles[kMaxRows])(const Tile&) = {tile<1>, tile<2>, tile<3>, tile<4>,
                                                     tile<5>, tile<6>, tile<7>, tile<8>};
  alignas(64) float sums[kMaxRows * kBf16Panel];
  const std::size_t fitting = g.near / (g.k * sizeof(float)) / kMaxRows * kMaxRows;
  const std::size_t chunk = fitting > kMaxRows ? fitting : kMaxRows;
  for (std::size_t m0 = m_begin; m0 < m_end; m0 += chunk) {
    const std::size_t m1 = m_end - m0 < chunk ? m_end : m0 + chunk;
    for (std::size_t n = n_begin; n < n_end; n += kBf16Panel)
      for (std::size_t m = m0; m < m1; m += kMaxRows) {
        const std::size_t height = m1 - m < kMaxRows ? m1 - m : kMaxRows;
        kTiles[height - 1]({g.a + m * g.lda, g.lda, g.b + n * g.k, g.k, sums});
        finish(g.out, m, height, n, [&](std::size_t r, int v) {
          return _mm512_load_ps(sums + r * kBf16Panel + 16 * static_cast<std::size_t>(v));
        });
      }
  }
}

void pack_b_bf16(const std::uint16_t* b, bool transposed, std::size_t k, std::size_t n, std::uint16_t* out) {
  for (std::size_t first = 0; first < n; first += kBf16Panel)
    for (std::size_t row = 0; row < k; ++row)
      for (std::size_t i = 0; i < kBf16Panel; ++i) {
        const std::size_t column = first + i / 2 + i % 2 * 16;
        *out++ = column < n ? b[transposed ? column * k + row : row * n + column] : 0;
      }
}

}  // namespace modelflow::cpu
