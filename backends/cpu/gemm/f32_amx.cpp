// Matrix products of float32 on tiles that multiply bfloat16: every number is the sum of three of 8 significant bits.
#include "backends/cpu/gemm/f32_amx.h"

#include "backends/cpu/gemm/epilogue_avx512.h"
#include "backends/cpu/gemm/tiles_amx.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kStepNumbers = kTileBytes / 2;
constexpr std::size_t kPartBytes = 2 * kTileRows * kTileBytes;  // of a step of B
constexpr std::size_t kStepBytes = kTileParts * kPartBytes;
/// Steps after which sums go to memory and the next columns have their turn: 768 numbers, so that A's parts of 256 rows
/// and B's of two panels stay in L2 (2 MiB).
constexpr std::size_t kChunkSteps = 24;
/// Panels of rows that meet all columns before the next ones do, for the same reason.
constexpr std::size_t kMostPanels = 8;
constexpr std::size_t kSums = kTileBlock * kTileBlock;

/// A number's first, second and third 8 bits. They are cut off, not rounded, so that the largest numbers stay finite.
struct Parts {
  __m512i part[kTileParts];
  /// `finite`: where x is neither infinite nor NaN; of such there is only a first part.
  MODELFLOW_INLINE explicit Parts(__m512 x, __mmask16 finite = 0xffff) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    part[0] = _mm512_and_si512(_mm512_castps_si512(x), upper);
    const __m512 rest = _mm512_maskz_sub_ps(finite, x, _mm512_castsi512_ps(part[0]));
    part[1] = _mm512_and_si512(_mm512_castps_si512(rest), upper);
    part[2] = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(part[1])));
  }
};

MODELFLOW_INLINE __mmask16 finite_lanes(__m512 x) {
  return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
}

/// The upper halves of both, those of `low` first.
MODELFLOW_INLINE __m512i upper_halves(__m512i low, __m512i high) {
  alignas(64) static constexpr std::uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                         23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                         45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(low, _mm512_load_si512(kOdd), high);
}

/// Splits steps of a packed panel of B into tiles of parts: pairs of rows side by side. Vectors do that while tiles
/// multiply, some pairs at a time: one product of tiles takes 16 cycles and one instruction.
class SplitColumns {
 public:
  SplitColumns() = default;
  /// `steps` of the panel `b` of `rows` rows, zeros behind them.
  SplitColumns(const float* b, std::size_t rows, std::size_t steps, std::byte* to)
      : b_(b), rows_(rows), pairs_(steps * kStepNumbers / 2), to_(to) {}

  MODELFLOW_INLINE void pairs(std::size_t count) {
    for (; count > 0 && pairs_ > 0; --count) pair();
  }
  void rest() { pairs(pairs_); }

 private:
  MODELFLOW_INLINE void pair() {
    constexpr std::size_t kAhead = 4096;  // bytes: L3 is a microsecond or two away
    const __mmask16 even = rows_ > 0 ? 0xffff : 0, odd = rows_ > 1 ? 0xffff : 0;
    for (std::size_t v = 0; v < 2; ++v) {
      const float* at = b_ + 16 * v;
      _mm_prefetch(reinterpret_cast<const char*>(at) + kAhead, _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(at + kTileBlock) + kAhead, _MM_HINT_T1);
      const Parts x(_mm512_maskz_loadu_ps(even, at)), y(_mm512_maskz_loadu_ps(odd, at + kTileBlock));
      std::byte* to = to_ + v * kTileBytes;
      for (std::size_t part = 0; part < kTileParts; ++part)
        _mm512_store_si512(to + part * kPartBytes, side_by_side(x.part[part], y.part[part]));
    }
    b_ += 2 * kTileBlock;
    rows_ -= rows_ < 2 ? rows_ : 2;
    to_ += 2 * kTileBytes;
    if (--pairs_ % (kStepNumbers / 2) == 0) to_ += kStepBytes - kPartBytes;
  }
  /// The upper halves of x below those of y.
  static MODELFLOW_INLINE __m512i side_by_side(__m512i x, __m512i y) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
    constexpr int kOrAnd = 0xf8;  // x | (y & upper)
    return _mm512_ternarylogic_epi32(_mm512_srli_epi32(x, 16), y, upper, kOrAnd);
  }

  const float* b_ = nullptr;
  std::size_t rows_ = 0, pairs_ = 0;
  std::byte* to_ = nullptr;
};

/// What is multiplied in one go: panels [begin, end) of rows by the columns from n on, steps [from, to) of the sums.
struct Part {
  std::size_t begin, end, from, to, n;
};

/// The parts of A that a Part reads: those of its first panel and step, and bytes from a row to the next.
struct RowParts {
  const std::byte* at;
  std::size_t row;
};

/// One panel of B in parts by the panels of rows, for some steps. Its sums begin where those of the steps before ended.
void multiply(const F32Gemm& g, const Part& t, const RowParts& a, const std::byte* b, SplitColumns next, float* sums) {
  alignas(64) static constexpr float kZeros[kTileBlock] = {};
  const std::size_t panels = t.end - t.begin, steps = t.to - t.from, tile_rows = g.rows.tile_rows();
  const std::size_t pairs = (kStepNumbers / 2 + kPartProducts * panels - 1) / (kPartProducts * panels);
  TileProduct p{};
  p.a_row = a.row, p.a_low = tile_rows * a.row;
  p.b = b, p.steps = kTileParts * steps, p.tile_rows = tile_rows;
  p.begin_row = t.from ? kTileBlock * sizeof(float) : 0;
  for (std::size_t i = 0; i < panels; ++i, sums += kSums) {
    const std::size_t panel = t.begin + i, height = g.rows.begin(panel + 1) - g.rows.begin(panel);
    p.a = a.at + i * kTileBlock * a.row;
    p.sums = sums;
    p.begin = t.from ? sums : kZeros;
    multiply_tiles<TileKind::parts>(
        p, height > tile_rows ? 2 : 1, 2, [&]() __attribute__((always_inline)) { next.pairs(pairs); });
  }
  next.rest();
}

/// Finished sums of the panels to y.
void finish_panels(const F32Gemm& g, const Part& t, const float* sums) {
  const __m512 scale = _mm512_set1_ps(g.scale);
  for (std::size_t panel = t.begin; panel < t.end; ++panel, sums += kSums) {
    const std::size_t m = g.rows.begin(panel), height = g.rows.begin(panel + 1) - m;
    finish(
        g.out, m, height, t.n, [&](std::size_t r, int v) __attribute__((always_inline)) {
          return _mm512_mul_ps(_mm512_load_ps(sums + r * kTileBlock + 16 * static_cast<std::size_t>(v)), scale);
        });
  }
}

/// Numbers [from, to) of the rows of panels, in parts, `step` bytes from a row to the next. Whether all are finite.
bool split_some(const TilePanels& panels, const float* a, std::size_t k, const Part& t, std::size_t step,
                std::byte* out) {
  const std::size_t from = t.from * kStepNumbers, to = t.to * kStepNumbers < k ? t.to * kStepNumbers : k;
  __mmask16 all = 0xffff;
  for (std::size_t panel = t.begin; panel < t.end; ++panel, out += kTileBlock * step) {
    std::byte* row = out;
    for (std::size_t r = panels.begin(panel); r < panels.begin(panel + 1); ++r, row += step) {
      std::byte* at = row;
      for (std::size_t i = from; i < to; i += kStepNumbers, at += kTileParts * kTileBytes) {
        const TwoRegisters some(i, to);
        const __m512 low = some.load(a + r * k + i, 0), high = some.load(a + r * k + i, 1);
        const __mmask16 finite[2] = {finite_lanes(low), finite_lanes(high)};
        const Parts x(low, finite[0]), y(high, finite[1]);
        all &= finite[0] & finite[1];
        for (std::size_t part = 0; part < kTileParts; ++part)
          _mm512_store_si512(at + part * kTileBytes, upper_halves(x.part[part], y.part[part]));
      }
    }
  }
  return all == 0xffff;
}

/// The memory of one call, and how its work is ordered.
struct Plan {
  std::size_t steps, chunk_steps, panels, blocks;

  Plan(const F32Gemm& g, std::size_t all_panels, std::size_t columns)
      : steps(tile_steps(2 * g.k)),
        chunk_steps(steps < kChunkSteps ? steps : kChunkSteps),
        panels(all_panels < kMostPanels ? all_panels : kMostPanels),
        blocks((columns + kTileBlock - 1) / kTileBlock) {}
  std::size_t b_bytes() const { return chunk_steps * kStepBytes; }
  std::size_t sums() const { return (steps > chunk_steps ? panels * blocks : panels) * kSums; }
  std::size_t a_row() const { return tile_row(chunk_steps * kTileParts * kTileBytes); }
  std::size_t a_bytes() const { return panels * kTileBlock * a_row(); }
};

}  // namespace

std::size_t gemm_f32_amx_scratch(const F32Gemm& g, std::size_t panels, std::size_t columns) {
  const Plan plan(g, panels, columns);
  return 2 * plan.b_bytes() + plan.sums() * sizeof(float) + (g.parts ? 0 : plan.a_bytes());
}

bool gemm_f32_amx(const F32Gemm& g, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end,
                  std::byte* scratch) {
  if (begin == end) return true;
  const TileRegisters registers(g.rows.tile_rows());
  const Plan plan(g, end - begin, n_end - n_begin);
  std::byte *b = scratch, *spare = b + plan.b_bytes();
  auto* sums = reinterpret_cast<float*>(spare + plan.b_bytes());
  auto* own = reinterpret_cast<std::byte*>(sums + plan.sums());
  const auto columns = [&](std::size_t from, std::size_t n, std::byte* to) {
    const std::size_t row = from * kStepNumbers, left = plan.steps - from;
    return SplitColumns(g.b + n * g.k + row * kTileBlock, g.k - row, left < kChunkSteps ? left : kChunkSteps, to);
  };
  columns(0, n_begin, b).rest();
  bool finite = true;
  const std::size_t chunks = (end - begin + kMostPanels - 1) / kMostPanels;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    Part t{begin + (end - begin) * chunk / chunks, begin + (end - begin) * (chunk + 1) / chunks, 0, 0, 0};
    for (t.from = 0; t.from < plan.steps; t.from = t.to) {
      t.to = t.from + kChunkSteps < plan.steps ? t.from + kChunkSteps : plan.steps;
      RowParts a{own, plan.a_row()};
      if (g.parts)
        a = {g.parts + g.rows.offset(t.begin) + t.from * kTileParts * kTileBytes, tile_row(g.rows.row)};
      else
        finite &= split_some(g.rows, g.a, g.k, t, a.row, own);
      for (t.n = n_begin; t.n < n_end; t.n += kTileBlock) {
        float* kept = sums + (plan.steps > kChunkSteps ? (t.n - n_begin) / kTileBlock * (t.end - t.begin) * kSums : 0);
        const bool last = t.n + kTileBlock >= n_end, done = last && t.to == plan.steps && chunk + 1 == chunks;
        SplitColumns next;
        if (!done)
          next = columns(!last ? t.from : t.to < plan.steps ? t.to : 0, last ? n_begin : t.n + kTileBlock, spare);
        multiply(g, t, a, b, next, kept);
        std::byte* multiplied = b;
        b = spare, spare = multiplied;
        if (t.to == plan.steps) finish_panels(g, t, kept);
      }
    }
  }
  return finite;
}

bool split_rows_amx(const TilePanels& panels, const float* a, std::size_t k, std::size_t begin, std::size_t end,
                    std::byte* out) {
  return split_some(panels, a, k, {begin, end, 0, tile_steps(2 * k), 0}, tile_row(panels.row),
                    out + panels.offset(begin));
}

}  // namespace modelflow::cpu
