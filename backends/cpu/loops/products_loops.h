// The loops of products.h, written over vectors (see vector.h).
#pragma once

#include "backends/cpu/loops/products.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// Sums of a tile: so many rows of two vectors leave registers for two vectors of b and a number of a.
constexpr std::size_t kProductRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 4;

/// R rows and V vectors from (row, column) on, the last vector as far as `part` says.
template <std::size_t R, std::size_t V, class Part>
MODELFLOW_INLINE void product_tile(const SmallProduct& p, std::size_t row, std::size_t column, Part part) {
  Floats sum[R][V] = {};
  const float *a = p.a + row * p.a_row, *b = p.b + column;
  for (std::size_t i = 0; i < p.depth; ++i, a += p.a_step, b += p.b_step) {
    Floats right[V];
#pragma GCC unroll 2
    for (std::size_t v = 0; v + 1 < V; ++v) right[v] = load(b + v * kLanes);
    right[V - 1] = load(b + (V - 1) * kLanes, part);
#pragma GCC unroll 12
    for (std::size_t r = 0; r < R; ++r) {
      const Floats left = all(a[r * p.a_row]);
#pragma GCC unroll 2
      for (std::size_t v = 0; v < V; ++v) sum[r][v] += left * right[v];
    }
  }
  float* c = p.c + row * p.c_row + column;
#pragma GCC unroll 12
  for (std::size_t r = 0; r < R; ++r, c += p.c_row) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v + 1 < V; ++v) store(c + v * kLanes, sum[r][v]);
    store(c + (V - 1) * kLanes, sum[r][V - 1], part);
  }
}

template <std::size_t R>
MODELFLOW_FLAT __attribute__((noinline)) void product_rows(const SmallProduct& p, std::size_t row) {
  std::size_t column = 0;
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes) product_tile<R, 2>(p, row, column, Whole{});
  if (column + kLanes <= p.columns) {
    product_tile<R, 1>(p, row, column, Whole{});
    column += kLanes;
  }
  if (column < p.columns) product_tile<R, 1>(p, row, column, Rest(p.columns - column));
}

void small_product(const SmallProduct& p) {
  std::size_t row = 0;
  for (; row + kProductRows <= p.rows; row += kProductRows) product_rows<kProductRows>(p, row);
  for (; row + kProductRows / 2 <= p.rows; row += kProductRows / 2) product_rows<kProductRows / 2>(p, row);
  for (; row < p.rows; ++row) product_rows<1>(p, row);
}

MODELFLOW_FLAT void column_squares(const float* x, std::size_t rows, std::size_t n, std::size_t step, float* sums) {
  vectors(n, [&](std::size_t i, auto part) {
    Floats sum[4] = {};
    std::size_t row = 0;
    for (; row + 4 <= rows; row += 4) {
#pragma GCC unroll 4
      for (std::size_t r = 0; r < 4; ++r) {
        const Floats number = load(x + (row + r) * step + i, part);
        sum[r] += number * number;
      }
    }
    for (; row < rows; ++row) {
      const Floats number = load(x + row * step + i, part);
      sum[0] += number * number;
    }
    store(sums + i, (sum[0] + sum[1]) + (sum[2] + sum[3]), part);
  });
}

}  // namespace
}  // namespace modelflow::cpu
