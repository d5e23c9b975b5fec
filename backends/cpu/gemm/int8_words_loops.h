// Matrix products of 8-bit numbers in words: rows of A quantized, products, epilogue. For files named
// *_avx2.cpp, see vector.h.
#pragma once

#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/gemm/epilogue_loops.h"
#include "backends/cpu/gemm/int8_words.h"
#include "backends/cpu/gemm/word_tile.h"
#include "backends/cpu/vector/bytes.h"
#include "backends/cpu/vector/magnitudes.h"

namespace modelflow::cpu {
namespace {

/// y[i] = number(i, part), which is 0 to 255 or cut to that.
template <class Number>
MODELFLOW_INLINE void write_steps(std::size_t n, std::uint8_t* y, Number number) {
  write_bytes(n, y, number);
}
template <class Number>
MODELFLOW_INLINE void write_steps(std::size_t n, std::uint16_t* y, Number number) {
  vectors(n, [&](std::size_t i, auto part) {
    Ints x = number(i, part);
    x = x > 0 ? x : Ints{};
    store_halves(y + i, x < 255 ? x : Ints{} + 255, part);
  });
}

/// What quantizing leaves of a row: its steps, zeros up to the end of the last word, and their sum where one asks.
template <class Rows, class Number>
MODELFLOW_INLINE void write_row(const Rows& rows, std::size_t r, std::int32_t zero, const QuantizedRows& out,
                                Number number) {
  auto* y = reinterpret_cast<typename Rows::Step*>(out.steps) + r * rows.row();
  write_steps(rows.k, y, number);
  for (std::size_t i = rows.k; i % 4; ++i) y[i] = 0;
  if (!out.sums) return;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < rows.k; ++i) sum += y[i] - zero;
  out.sums[r] = sum;
}

template <class Rows>
void quantize_rows(const Rows& rows, const float* a, std::size_t begin, std::size_t end, const QuantizedRows& out) {
  constexpr std::int32_t kZero = 128;
  for (std::size_t r = rows.begin(begin); r < rows.begin(end); ++r) {
    const float* row = a + r * rows.k;
    const float size = largest_size(row, rows.k), range = size < 1e-30f ? 1e-30f : size;
    const Floats inverse = all(127 / range);
    out.scale[r] = step_size(range);
    write_row(rows, r, kZero, out,
              [&](std::size_t i, auto part) { return nearest(load(row + i, part) * inverse) + kZero; });
  }
}

/// As QuantizeLinear says it; NaN gives 0.
template <class Rows>
void quantize_steps(const Rows& rows, const float* a, std::size_t begin, std::size_t end, float scale,
                    std::int32_t zero_point, const QuantizedRows& out) {
  const ToByte byte{zero_point};
  const Floats unit = all(scale);
  for (std::size_t r = rows.begin(begin); r < rows.begin(end); ++r) {
    const float* row = a + r * rows.k;
    out.scale[r] = scale;
    write_row(rows, r, zero_point, out, [&](std::size_t i, auto part) { return byte(load(row + i, part) / unit); });
  }
}

/// The smallest and the largest of n > 0 floats; NaN where one is.
inline void range_of(const float* a, std::size_t n, float* low, float* high) {
  Floats lows[4], highs[4];
  for (std::size_t v = 0; v < 4; ++v) lows[v] = highs[v] = all(a[0]);
  vectors_by_four(n, [&](std::size_t i, auto part, std::size_t v) {
    const Floats x = load(a + i, part, a[0]);
    lows[v] = minimum(lows[v], x), highs[v] = maximum(highs[v], x);
  });
  const Floats least = minimum(minimum(lows[0], lows[1]), minimum(lows[2], lows[3]));
  const Floats most = maximum(maximum(highs[0], highs[1]), maximum(highs[2], highs[3]));
  *low = joined(least, [](Floats p, Floats q) { return minimum(p, q); });
  *high = joined(most, [](Floats p, Floats q) { return maximum(p, q); });
}

template <class Rows>
void pack_rows(const Rows& rows, const std::uint8_t* a, std::uint8_t* steps) {
  for (std::size_t r = 0; r < rows.m; ++r) {
    auto* y = reinterpret_cast<typename Rows::Step*>(steps) + r * rows.row();
    for (std::size_t i = 0; i < rows.k; ++i) y[i] = a[r * rows.k + i];
    for (std::size_t i = rows.k; i % 4; ++i) y[i] = 0;
  }
}

/// One panel of B by the rows of some panels of A.
template <class Word, class Rows>
void multiply_panel(const BytesGemm<Rows>& g, std::size_t begin, std::size_t end, std::size_t n) {
  const WordPanels panels{kWordColumns, Word::kSteps};
  const std::size_t depth = panels.depth(g.rows.k), row = g.rows.row(), bytes = kWordColumns * depth;
  alignas(64) std::int32_t start[kWordColumns], sums[kWordRows * kWordColumns] = {};
  const auto* of_columns = reinterpret_cast<const std::int32_t*>(g.b + panels.count(g.n) * bytes) + n;
  for (std::size_t j = 0; j < kWordColumns; ++j)  // wraps around and comes back
    start[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(-g.zero_point) *
                                         static_cast<std::uint32_t>(of_columns[j]));
  const typename Word::Step* at[kWordRows];
  const WordTile<Word> tile{at, 0, 1, depth / Word::kSteps, g.b + n / kWordColumns * bytes, start, sums};
  const std::size_t columns = g.n - n < kWordColumns ? g.n - n : kWordColumns;
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t m = g.rows.begin(i), rows = g.rows.begin(i + 1) - m;
    for (std::size_t r = 0; r < rows; ++r) at[r] = reinterpret_cast<const typename Word::Step*>(g.a) + (m + r) * row;
    run_word_tile<Word>(tile, rows, columns);
    for (std::size_t r = 0; g.row_sum && r < rows; ++r) {  // (A - za) (B - zb) = (A - za) B - (sum of A - za) zb
      const Ints sum = g.row_sum[m + r] - Ints{};
      for (std::size_t j = 0; j < kWordColumns; j += kLanes) {
        std::int32_t* part = sums + r * kWordColumns + j;
        store_ints(part, load_ints(part) - sum * load_ints(g.column_zero + n + j));
      }
    }
    const std::int32_t* totals = sums;
    const float *row_scale = g.row_scale + m, *column_scale = g.column_scale + n;
    finish_columns(g.out, m, rows, n, columns, [=](std::size_t r, std::size_t j, auto part) {
      return as_floats(load_ints(totals + r * kWordColumns + j)) * row_scale[r] * load(column_scale + j, part);
    });
  }
}

template <class Word, class Rows>
void multiply(const BytesGemm<Rows>& g, std::size_t begin, std::size_t end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t bytes = (g.rows.begin(end) - g.rows.begin(begin)) * g.rows.row() * sizeof(typename Word::Step);
  const std::size_t panels = end - begin, wanted = (bytes + g.near - 1) / g.near;
  const std::size_t chunks = wanted < panels ? wanted : panels;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::size_t n = n_begin; n < n_end; n += kWordColumns)
      multiply_panel<Word>(g, begin + panels * chunk / chunks, begin + panels * (chunk + 1) / chunks, n);
  }
}

template <class Word, class Rows>
constexpr WordsCode<Rows> kWordsCode = {quantize_rows<Rows>, quantize_steps<Rows>, range_of, pack_rows<Rows>,
                                        multiply<Word, Rows>};

}  // namespace
}  // namespace modelflow::cpu
