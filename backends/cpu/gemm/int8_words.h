// Matrix products of 8-bit numbers in words of four bytes, for machines without AVX-512 VNNI: how A lies, the packing
// of B, and the table of code for a kind of word.
#pragma once

#include "backends/cpu/gemm/int8_vnni.h"

namespace modelflow::cpu {

/// A in steps, row after row, `Number` each; tiles take at most `most` rows.
template <class Number, std::size_t most>
struct StepRows {
  using Step = Number;
  std::size_t m, k;
  std::size_t count() const { return (m + most - 1) / most; }
  /// The first row of a panel; m for the one behind the last.
  std::size_t begin(std::size_t panel) const { return m * panel / count(); }
  /// Steps from a row to the next: an odd number of cache lines, so that the rows of a tile differ in their sets of L1.
  std::size_t row() const { return ((k * sizeof(Step) + 63) / 64 | 1) * 64 / sizeof(Step); }
  std::size_t bytes() const { return m * row() * sizeof(Step); }
};

/// The code for a kind of word, as gemm_vnni and quantize_rows_vnni.h have it for VNNI.
template <class Rows>
struct WordsCode {
  void (*quantize_rows)(const Rows& rows, const float* a, std::size_t begin, std::size_t end, const QuantizedRows& out);
  void (*quantize)(const Rows& rows, const float* a, std::size_t begin, std::size_t end, float scale,
                   std::int32_t zero_point, const QuantizedRows& out);
  void (*range)(const float* a, std::size_t n, float* low, float* high);
  /// Rows of k bytes as they are.
  void (*pack_rows)(const Rows& rows, const std::uint8_t* a, std::uint8_t* steps);
  /// n_begin: a multiple of the columns of a panel of B.
  void (*multiply)(const BytesGemm<Rows>& gemm, std::size_t begin, std::size_t end, std::size_t n_begin,
                   std::size_t n_end);
};

using PairRows = StepRows<std::uint16_t, 6>;
using QuadRows = StepRows<std::uint8_t, 6>;
extern const WordsCode<PairRows> pair_words_avx2;
extern const WordsCode<QuadRows> quad_words_avx2;     ///< with AVX-VNNI
extern const WordsCode<QuadRows> bounded_words_avx2;  ///< for weights of bounded_pairs (src/core/bounded_pairs.h)

/// Panels of `columns` columns of B, words of `steps` bytes of each.
struct WordPanels {
  std::size_t columns, steps;
  std::size_t depth(std::size_t k) const { return (k + steps - 1) / steps * steps; }
  std::size_t count(std::size_t n) const { return (n + columns - 1) / columns; }
  std::size_t bytes(std::size_t k, std::size_t n) const {
    return count(n) * columns * (depth(k) + sizeof(std::int32_t));
  }
  /// Packs B [k, n], or its transpose [n, k] when `transposed`; behind the panels the int32 sum of every column.
  void pack(const std::int8_t* b, bool transposed, std::size_t k, std::size_t n, std::byte* out) const;
};

}  // namespace modelflow::cpu
