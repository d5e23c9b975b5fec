// What positions in a grid add to scores: written over vectors (see vector.h), for files of one instruction set.
#pragma once

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// Adds to the scores of `n` keys from `key` on, which lie at `scores`, what this row has for their places in the grid.
MODELFLOW_INLINE void add_grid(const AttentionGrid& grid, std::size_t row, std::size_t key, std::size_t n,
                               float* scores) {
  const float *by_row = grid.rows + row * grid.high, *by_column = grid.columns + row * grid.wide;
  for (std::size_t j = 0; j < n;) {
    const std::size_t column = (key + j) % grid.wide, left = grid.wide - column, count = left < n - j ? left : n - j;
    const Floats number = all(by_row[(key + j) / grid.wide]);
    vectors(count, [&](std::size_t i, auto part) {
      store(scores + j + i, load(scores + j + i, part) + (number + load(by_column + column + i, part)), part);
    });
    j += count;
  }
}

}  // namespace
}  // namespace modelflow::cpu
