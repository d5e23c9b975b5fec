// The inner kernel of products of 8-bit numbers in words: some rows by two registers of columns. For files named
// *_avx2.cpp, see vector.h.
#pragma once

#include "backends/cpu/vector/words.h"

namespace modelflow::cpu {
namespace {

/// Columns of a panel of B, and rows of a tile: sums, weights and a word of A fill the registers.
constexpr std::size_t kWordColumns = 2 * kLanes, kWordRows = 6;

template <class Word>
struct WordTile {
  using Step = typename Word::Step;
  const Step* const* rows;      ///< for each segment, where each row of the tile has it
  std::size_t from;             ///< the first step of a segment that counts
  std::size_t segments, words;  ///< words of a segment
  const std::byte* weights;     ///< for each segment and word kWordColumns times kSteps bytes
  const std::int32_t* begin;    ///< of the sums, per column
  std::int32_t* sums;           ///< [rows][kWordColumns]
};

/// Few sums: then words go to sums of their own in turn, or each would wait for the one before (vpdpbusd takes five
/// cycles; the sum behind vpmaddwd takes one).
template <class Word, int sums>
constexpr int kWordsApart = Word::kSteps == 2 || sums > 7 ? 1
                            : sums > 3                    ? 2
                                                          : 4;

/// R rows by the first V of the two registers of columns.
template <class Word, int R, int V>
__attribute__((noinline)) void word_tile(const WordTile<Word>& t) {
  constexpr int kApart = kWordsApart<Word, R * V>;
  Ints acc[kApart][R][V];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kApart; ++i)
      for (int v = 0; v < V; ++v) acc[i][r][v] = i ? Ints{} : load_ints(t.begin + static_cast<std::size_t>(v) * kLanes);
  }
  const std::byte* w = t.weights;
  const auto* rows = t.rows;
  for (std::size_t s = 0; s < t.segments; ++s, rows += R) {
    const typename Word::Step* a[R];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) a[r] = rows[r] + t.from;
    const auto word = [&](std::size_t k, int i) __attribute__((always_inline)) {
      Ints factors[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) factors[v] = Word::weights(w + static_cast<std::size_t>(v) * kLanes * Word::kSteps);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const Ints four = all_words(a[r] + k);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) Word::add(acc[i][r][v], four, factors[v]);
      }
      w += kWordColumns * Word::kSteps;
    };
    const std::size_t steps = t.words * Word::kSteps;
    std::size_t k = 0;
    for (; k + 4 * Word::kSteps <= steps; k += 4 * Word::kSteps) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) word(k + static_cast<std::size_t>(i) * Word::kSteps, i % kApart);
    }
    for (; k < steps; k += Word::kSteps) word(k, 0);
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
#pragma GCC unroll 4
      for (int i = 1; i < kApart; ++i) acc[0][r][v] += acc[i][r][v];
      store_ints(t.sums + static_cast<std::size_t>(r) * kWordColumns + static_cast<std::size_t>(v) * kLanes,
                 acc[0][r][v]);
    }
  }
}

template <class Word, int V, int R = static_cast<int>(kWordRows)>
void run_word_tile(const WordTile<Word>& t, std::size_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return run_word_tile<Word, V, R - 1>(t, rows);
  }
  word_tile<Word, R, V>(t);
}

/// The tile of so many rows and columns; sums of columns behind the last need not be written.
template <class Word>
void run_word_tile(const WordTile<Word>& t, std::size_t rows, std::size_t columns) {
  columns > kLanes ? run_word_tile<Word, 2>(t, rows) : run_word_tile<Word, 1>(t, rows);
}

}  // namespace
}  // namespace modelflow::cpu
