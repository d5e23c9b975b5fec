// Matrix products of bfloat16 and of 8-bit numbers on AMX: rows and panels pass through the tiles, and the packing for
// that.
#include "backends/cpu/gemm/bf16_int8_amx.h"

#include "backends/cpu/gemm/epilogue_avx512.h"
#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/gemm/round_amx.h"
#include "backends/cpu/gemm/tiles_amx.h"

namespace modelflow::cpu {
namespace {

/// Rows of A that stay in L2 (2 MiB) beside two panels of B while all columns pass by.
constexpr std::size_t kChunkBytes = 1 << 20;
/// How far ahead B is fetched where its panels are read once.
constexpr std::size_t kStream = 16384;
/// Lines of B that a step reads.
constexpr std::size_t kStepLines = 2 * kTileRows;

/// A and B of a product as tiles read them.
struct Operands {
  TilePanels rows;
  const std::byte *a, *b;
  const TileRowsAt* at;

  std::size_t taps() const { return at ? at->tap_count : 1; }
  std::size_t b_panel() const { return tile_steps(rows.row) * taps() * kStepLines * kTileBytes; }
};

struct Task {
  Operands of;
  const std::byte* b;
  std::size_t begin, end;  // panels of rows
  std::size_t tile_rows;
};

/// One panel of B by the panels of rows. `then(panel, sums)` takes the sums, rows of 32.
template <TileKind Kind, class Then>
MODELFLOW_INLINE void multiply(const Task& t, const void* start, bool last, Then then) {
  alignas(64) std::byte sums[kTileBlock * kTileBlock * 4];
  const TilePanels& rows = t.of.rows;
  const TileRowsAt* at = t.of.at;
  const std::size_t steps = tile_steps(rows.row), panels = t.end - t.begin, bytes = t.of.b_panel();
  const std::size_t lines = (kStepLines + panels - 1) / panels, row = at ? at->distance : tile_row(rows.row);
  TileProduct p{nullptr, row, t.tile_rows * row, t.b, steps, start, 0, sums, t.tile_rows};
  if (at) p.taps = at->taps, p.tap_count = at->tap_count;
  for (std::size_t i = 0; i < panels; ++i) {
    const std::size_t panel = t.begin + i, m = rows.begin(panel), height = rows.begin(panel + 1) - m;
    const std::size_t fetched = i * lines * steps * t.of.taps() * kTileBytes;
    const int tiles = height > t.tile_rows ? 2 : 1;
    const std::size_t read = static_cast<std::size_t>(tiles) * t.tile_rows;
    const std::size_t from = at && m + read > at->readable ? at->readable - read : m;  // some rows once more
    p.a = t.of.a + (at ? from * row : rows.offset(panel));
    const bool none = (last && panels > 1) || fetched >= bytes;
    multiply_tiles<Kind>(p, tiles, 2, FetchLines{t.b + (panels == 1 ? kStream : bytes + fetched), none ? 0 : lines});
    then(panel, sums + (m - from) * kTileBlock * 4);
  }
}

/// Panels of rows in chunks that fit L2; `column(task, n, last)` gets each panel of B for each of them.
template <class Column>
MODELFLOW_INLINE void walk(const Operands& of, std::size_t begin, std::size_t end, std::size_t n_begin,
                           std::size_t n_end, Column column) {
  const std::size_t tile_rows = of.rows.tile_rows(), panels = end - begin;
  const TileRegisters registers(tile_rows);
  const std::size_t bytes = of.rows.offset(end) - of.rows.offset(begin);
  const std::size_t needed = (bytes + kChunkBytes - 1) / kChunkBytes, chunks = needed < panels ? needed : panels;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    Task task{of, of.b, begin + panels * chunk / chunks, begin + panels * (chunk + 1) / chunks, tile_rows};
    for (std::size_t n = n_begin; n < n_end; n += kTileBlock) {
      task.b = of.b + n / kTileBlock * of.b_panel();
      column(task, n, n + kTileBlock >= n_end);
    }
  }
}

/// The rows of C among `height` rows of A from m on, as runs: run(the first of them, how many, row of C).
template <class Run>
MODELFLOW_INLINE void for_rows(const TileRowsAt* at, std::size_t m, std::size_t height, Run run) {
  const std::size_t first = at ? at->first + m : m;
  const bool all = !at || at->pitch == at->columns;
  const std::size_t pitch = all ? first + height : at->pitch, columns = all ? pitch : at->columns;
  for (std::size_t i = 0; i < height;) {
    const std::size_t line = (first + i) / pitch, column = (first + i) % pitch, rest = height - i;
    if (column < columns) run(i, columns - column < rest ? columns - column : rest, line * columns + column);
    i += pitch - column;
  }
}

template <class T>
void copy_rows(const TilePanels& panels, const T* a, std::size_t k, std::size_t begin, std::size_t end,
               std::byte* out) {
  const std::size_t step = tile_row(panels.row), whole = tile_steps(panels.row) * kTileBytes;
  for (std::size_t panel = begin; panel < end; ++panel) {
    std::byte* to = out + panels.offset(panel);
    for (std::size_t r = panels.begin(panel); r < panels.begin(panel + 1); ++r, to += step)
      tile_row_of(a + r * k, k, whole, to);
  }
}

/// A panel of B [k, n] in pairs of rows, the two numbers of a column side by side; zeros behind k and the columns.
void interleave_pairs(const std::uint16_t* b, std::size_t n, std::size_t k, std::size_t depth, std::size_t columns,
                      std::uint16_t* out) {
  const __mmask32 lanes = columns < 32 ? (__mmask32{1} << columns) - 1 : ~__mmask32{0};
  for (std::size_t row = 0; row < depth; row += 2, out += 2 * kTileBlock) {
    const __m512i even = row < k ? _mm512_maskz_loadu_epi16(lanes, b + row * n) : _mm512_setzero_si512();
    const __m512i odd = row + 1 < k ? _mm512_maskz_loadu_epi16(lanes, b + (row + 1) * n) : _mm512_setzero_si512();
    for (int half = 0; half < 2; ++half) {
      const __m256i low = half ? _mm512_extracti64x4_epi64(even, 1) : _mm512_castsi512_si256(even);
      const __m256i high = half ? _mm512_extracti64x4_epi64(odd, 1) : _mm512_castsi512_si256(odd);
      const __m512i pairs =
          _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
      _mm512_storeu_si512(out + 32 * half, pairs);
    }
  }
}

/// The same from columns that lie in rows of k: where pairs are whole, a transpose of words.
void gather_pairs(const std::uint16_t* b, std::size_t k, std::size_t depth, std::size_t columns, std::uint16_t* out) {
  if (k != depth || columns != kTileBlock) __builtin_memset(out, 0, depth * kTileBlock * 2);
  if (k % 2 == 0)
    return f32_avx512.transpose(reinterpret_cast<const float*>(b), k / 2, reinterpret_cast<float*>(out), kTileBlock,
                                columns, k / 2);
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < k; ++i) out[i / 2 * 2 * kTileBlock + 2 * j + i % 2] = b[j * k + i];
}

}  // namespace

void gemm_bf16_amx(const TileGemm& g, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end) {
  alignas(64) const float zeros[kTileBlock] = {};
  walk(
      {g.rows, g.a, g.b, g.at}, begin, end, n_begin,
      n_end, [&](const Task& task, std::size_t n, bool last) __attribute__((always_inline)) {
        multiply<TileKind::bf16>(
            task, zeros, last, [&](std::size_t panel, const void* sums) __attribute__((always_inline)) {
              const std::size_t m = g.rows.begin(panel), height = g.rows.begin(panel + 1) - m;
              for_rows(
                  g.at, m,
                  height, [&](std::size_t first, std::size_t count, std::size_t row) __attribute__((always_inline)) {
                    const auto* from = static_cast<const float*>(sums) + first * kTileBlock;
                    finish(
                        g.out, row, count, n, [&](std::size_t r, int v) __attribute__((always_inline)) {
                          return _mm512_load_ps(from + r * kTileBlock + 16 * static_cast<std::size_t>(v));
                        });
                  });
            });
      });
}

void gemm_bytes_amx(const BytesGemm<TilePanels>& g, std::size_t begin, std::size_t end, std::size_t n_begin,
                    std::size_t n_end) {
  alignas(64) std::int32_t start[kTileBlock];
  const std::size_t depth = tile_steps(g.rows.row) * kTileBytes;
  walk(
      {g.rows, reinterpret_cast<const std::byte*>(g.a), g.b, nullptr}, begin, end, n_begin,
      n_end, [&](const Task& task, std::size_t n, bool last) __attribute__((always_inline)) {
        start_of_sums(g, depth, n, start);
        const TwoRegisters columns(n, g.n);
        const __m512 units[2] = {columns.load(g.column_scale + n, 0), columns.load(g.column_scale + n, 1)};
        multiply<TileKind::bytes>(
            task, start, last, [&](std::size_t panel, const void* sums) __attribute__((always_inline)) {
              const std::size_t m = g.rows.begin(panel), height = g.rows.begin(panel + 1) - m;
              const auto* from = static_cast<const std::int32_t*>(sums);
              finish(
                  g.out, m, height, n, [&](std::size_t r, int v) __attribute__((always_inline)) {
                    __m512i sum = _mm512_load_si512(from + r * kTileBlock + 16 * static_cast<std::size_t>(v));
                    if (g.row_sum) {  // (A - za) (B - zb) = (A - za) B - (sum of A - za) zb
                      const __m512i zeros = _mm512_loadu_si512(g.column_zero + n + 16 * static_cast<std::size_t>(v));
                      sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(g.row_sum[m + r]), zeros));
                    }
                    return _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(g.row_scale[m + r])),
                                         units[v]);
                  });
            });
      });
}

void copy_rows_amx(const TilePanels& panels, const float* a, std::size_t k, std::size_t begin, std::size_t end,
                   std::byte* out) {
  copy_rows(panels, a, k, begin, end, out);
}

void copy_rows_amx(const TilePanels& panels, const std::uint16_t* a, std::size_t k, std::size_t begin, std::size_t end,
                   std::byte* out) {
  copy_rows(panels, a, k, begin, end, out);
}

void pack_b_bf16_amx(const std::uint16_t* b, bool transposed, std::size_t k, std::size_t n, std::uint16_t* out) {
  const std::size_t depth = tile_steps(2 * k) * kTileBytes / 2;
  for (std::size_t first = 0; first < n; first += kTileBlock, out += depth * kTileBlock) {
    const std::size_t columns = n - first < kTileBlock ? n - first : kTileBlock;
    transposed ? gather_pairs(b + first * k, k, depth, columns, out)
               : interleave_pairs(b + first, n, k, depth, columns, out);
  }
}

}  // namespace modelflow::cpu
