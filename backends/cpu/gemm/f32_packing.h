// Brings operands of matrix products of float32 into the order in which tiles read them. For files named so, see
// vector.h.
#pragma once

#include "backends/cpu/vector/transpose.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kPanel = 2 * kLanes;
// Registers of C and B and one of A: 6 x 4 + 4 + 1 of 32, or 6 x 2 + 2 + 1 of 16. 12 x 2 of 32 is as fast, but 12 rows
// that are a multiple of 4 KiB apart do not fit in an 8-way L1, and few rows want wide tiles.
constexpr std::size_t kMaxRows = 6;

/// Tiles of about the same height: 32 rows are 5 + 5 + 6 + 5 + 5 + 6.
class Heights {
 public:
  explicit Heights(std::size_t rows)
      : tiles_((rows + kMaxRows - 1) / kMaxRows), least_(tiles_ ? rows / tiles_ : 0), more_(rows - least_ * tiles_) {}

  std::size_t tiles() const { return tiles_; }
  std::size_t next() {
    rest_ += more_;
    if (rest_ < tiles_) return least_;
    rest_ -= tiles_;
    return least_ + 1;
  }

 private:
  std::size_t tiles_, least_, more_, rest_ = 0;
};

/// MR rows of A side by side: all numbers of a step of k, then those of the next. Up to a vector behind them is written
/// as well.
template <std::size_t MR>
void pack_rows(const float* a, std::size_t lda, std::size_t k, float* to) {
  std::size_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    Floats r[kLanes] = {};
#pragma GCC unroll 16
    for (std::size_t m = 0; m < MR; ++m) r[m] = load(a + m * lda + i);
    transpose_registers(r);
#pragma GCC unroll 16
    for (std::size_t j = 0; j < kLanes; ++j, to += MR) store(to, r[j]);
  }
  for (; i < k; ++i, to += MR)
    for (std::size_t m = 0; m < MR; ++m) to[m] = a[m * lda + i];
}

void pack_a(const float* a, std::size_t lda, std::size_t rows, std::size_t k, float* to) {
  constexpr decltype(&pack_rows<1>) kPack[kMaxRows] = {pack_rows<1>, pack_rows<2>, pack_rows<3>,
                                                       pack_rows<4>, pack_rows<5>, pack_rows<6>};
  kPack[rows - 1](a, lda, k, to);
}

/// Rows begin to end of a panel.
void pack_panel(const float* b, std::size_t ldb, bool transposed, std::size_t columns, std::size_t begin,
                std::size_t end, float* to) {
  for (std::size_t start = 0; start < kPanel; start += kLanes) {
    const std::size_t left = columns <= start ? 0 : columns - start, width = left < kLanes ? left : kLanes;
    if (transposed) {
      const float* from = b + start * ldb;
      for (std::size_t i = begin; i < end; i += kLanes)
        transpose_block(from + i, ldb, to + i * kPanel + start, kPanel, width, end - i, Whole{});
    } else {
      const Rest part(width);
      for (std::size_t i = begin; i < end; ++i) store(to + i * kPanel + start, load(b + i * ldb + start, part));
    }
  }
}

void pack_b(const float* b, std::size_t ldb, bool transposed, std::size_t k, std::size_t n, std::size_t first,
            std::size_t last, float* out) {
  // Some rows of all panels before the next ones: few enough to be read side by side as streams, and a page of each at
  // hand. Panel by panel every line of large weights would be on another page.
  const std::size_t rows = transposed ? k : 8;
  for (std::size_t begin = 0; begin < k; begin += rows) {
    const std::size_t end = k - begin < rows ? k : begin + rows;
    for (std::size_t p = first; p < last; ++p) {
      const std::size_t column = p * kPanel, columns = n - column < kPanel ? n - column : kPanel;
      pack_panel(b + column * (transposed ? ldb : 1), ldb, transposed, columns, begin, end, out + p * kPanel * k);
    }
  }
}

}  // namespace
}  // namespace modelflow::cpu
