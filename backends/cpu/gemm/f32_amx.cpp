// Matrix products of float32 on tiles that multiply bfloat16: every number is the sum of three of 8 significant bits.
#include "backends/cpu/gemm/f32_amx.h"

#include "backends/cpu/gemm/epilogue_avx512.h"
#include "backends/cpu/gemm/tiles_amx.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kStepNumbers = kTileBytes / 2;
constexpr std::size_t kStepBytes = kTileParts * 2 * kTileRows * kTileBytes;                 // of B in parts
constexpr std::size_t kStepLines = kStepNumbers * kTileBlock * sizeof(float) / kTileBytes;  // of B as it is
/// Steps after which sums go to memory and the next panel has its turn: 768 numbers, so that B's parts of them, and A's
/// of 128 rows, stay in L2 (2 MiB).
constexpr std::size_t kChunkSteps = 24;
/// Panels of rows that meet all columns before the next ones do, for the same reason.
constexpr std::size_t kMostPanels = 8;
constexpr std::size_t kSums = kTileBlock * kTileBlock;

/// A number's first, second and third 8 bits. They are cut off, not rounded, so that the largest numbers stay finite;
/// of infinities and NaN there is only a first.
struct Parts {
  __m512i part[kTileParts];
  __mmask16 finite;
  MODELFLOW_INLINE explicit Parts(__m512 x) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    finite = _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
    part[0] = _mm512_and_si512(_mm512_castps_si512(x), upper);
    const __m512 rest = _mm512_maskz_sub_ps(finite, x, _mm512_castsi512_ps(part[0]));
    part[1] = _mm512_and_si512(_mm512_castps_si512(rest), upper);
    part[2] = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(part[1])));
  }
};

/// The upper halves of both, those of `low` first.
MODELFLOW_INLINE __m512i upper_halves(__m512i low, __m512i high) {
  alignas(64) static constexpr std::uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                         23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                         45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(low, _mm512_load_si512(kOdd), high);
}

/// 32 rows of a packed panel of B, fewer where they end, to tiles: pairs of rows side by side, part by part.
void split_step(const float* b, std::size_t rows, std::byte* out) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
  for (std::size_t i = 0; i < kStepNumbers; i += 2) {
    for (std::size_t v = 0; v < 2; ++v) {
      const float* at = b + i * kTileBlock + 16 * v;
      const Parts x(i < rows ? _mm512_loadu_ps(at) : _mm512_setzero_ps());
      const Parts y(i + 1 < rows ? _mm512_loadu_ps(at + kTileBlock) : _mm512_setzero_ps());
      std::byte* to = out + i / 2 * 2 * kTileBytes + v * kTileBytes;
      for (std::size_t part = 0; part < kTileParts; ++part) {
        const __m512i high = _mm512_and_si512(y.part[part], upper);
        _mm512_store_si512(to + part * 2 * kTileRows * kTileBytes,
                           _mm512_or_si512(_mm512_srli_epi32(x.part[part], 16), high));
      }
    }
  }
}

/// What a task works on: panels [begin, end) of rows, steps [from, to) of the sums.
struct Part {
  std::size_t begin, end, from, to;
};

/// One panel of B by the panels of rows, for some steps. Its sums begin where those of the steps before ended.
void multiply(const F32Gemm& g, const Part& t, std::size_t n, std::byte* parts, float* sums) {
  alignas(64) static constexpr float kZeros[kTileBlock] = {};
  const std::size_t all = tile_steps(2 * g.k), steps = t.to - t.from, panels = t.end - t.begin;
  const float* b = g.b + n * g.k;
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t row = (t.from + i) * kStepNumbers;
    split_step(b + row * kTileBlock, g.k - row, parts + i * kStepBytes);
  }
  TileProduct p{};
  p.a_row = tile_row(g.rows.row), p.a_low = kTileRows * p.a_row;
  p.b = parts, p.steps = kTileParts * steps;
  p.begin_row = t.from ? kTileBlock * sizeof(float) : 0;
  const std::size_t lines = (kStepLines + panels - 1) / panels;
  for (std::size_t i = 0; i < panels; ++i, sums += kSums) {
    const std::size_t panel = t.begin + i, m = g.rows.begin(panel), height = g.rows.begin(panel + 1) - m;
    p.a = g.a + g.rows.offset(panel) + t.from * kTileParts * kTileBytes;
    p.begin = t.from ? sums : kZeros;
    p.sums = sums;
    p.ahead = b + (g.k + t.from * kStepNumbers) * kTileBlock + i * lines * steps * kTileBytes / sizeof(float);
    p.ahead_lines = n + kTileBlock < g.n && i * lines < kStepLines ? lines : 0;
    multiply_tiles<TileKind::parts>(p, height > kTileRows ? 2 : 1, 2);
    if (t.to < all) continue;
    const __m512 scale = _mm512_set1_ps(g.scale);
    finish(
        g.out, m, height, n, [&](std::size_t r, int v) __attribute__((always_inline)) {
          return _mm512_mul_ps(_mm512_load_ps(sums + r * kTileBlock + 16 * static_cast<std::size_t>(v)), scale);
        });
  }
}

}  // namespace

std::size_t gemm_f32_amx_scratch(std::size_t k, std::size_t panels, std::size_t columns) {
  const std::size_t steps = tile_steps(2 * k), blocks = (columns + kTileBlock - 1) / kTileBlock;
  const std::size_t rows = panels < kMostPanels ? panels : kMostPanels;
  return (steps < kChunkSteps ? steps : kChunkSteps) * kStepBytes +
         (steps > kChunkSteps ? rows * blocks : rows) * kSums * sizeof(float);
}

void gemm_f32_amx(const F32Gemm& g, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end,
                  std::byte* scratch) {
  const TileRegisters registers;
  const std::size_t steps = tile_steps(2 * g.k), chunks = (end - begin + kMostPanels - 1) / kMostPanels;
  auto* sums = reinterpret_cast<float*>(scratch + (steps < kChunkSteps ? steps : kChunkSteps) * kStepBytes);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t first = begin + (end - begin) * chunk / chunks,
                      last = begin + (end - begin) * (chunk + 1) / chunks;
    for (std::size_t from = 0; from < steps; from += kChunkSteps) {
      const std::size_t to = from + kChunkSteps < steps ? from + kChunkSteps : steps;
      for (std::size_t n = n_begin; n < n_end; n += kTileBlock) {
        const std::size_t kept = steps > kChunkSteps ? (n - n_begin) / kTileBlock * (last - first) : 0;
        multiply(g, {first, last, from, to}, n, scratch, sums + kept * kSums);
      }
    }
  }
}

bool split_rows_amx(const TilePanels& panels, const float* a, std::size_t k, std::size_t begin, std::size_t end,
                    std::byte* out) {
  const std::size_t step = tile_row(panels.row);
  __mmask16 all = 0xffff;
  for (std::size_t panel = begin; panel < end; ++panel) {
    std::byte* to = out + panels.offset(panel);
    for (std::size_t r = panels.begin(panel); r < panels.begin(panel + 1); ++r, to += step) {
      const float* from = a + r * k;
      for (std::size_t i = 0; i < k; i += 32) {
        const TwoRegisters some(i, k);
        const Parts x(some.load(from + i, 0)), y(some.load(from + i, 1));
        all &= x.finite & y.finite;
        for (std::size_t part = 0; part < kTileParts; ++part)
          _mm512_store_si512(to + 6 * i + part * kTileBytes, upper_halves(x.part[part], y.part[part]));
      }
    }
  }
  return all == 0xffff;
}

}  // namespace modelflow::cpu
