// Loops of small products of matrices, read where they lie.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// c[row, column] = the sum over `depth` of a[row, i] * b[i, column]: too small a product to pack its operands.
struct SmallProduct {
  std::size_t rows = 0, columns = 0, depth = 0;
  const float* a = nullptr;
  std::size_t a_row = 0, a_step = 1;  ///< floats from row to row, and along the depth
  const float* b = nullptr;
  std::size_t b_step = 0;  ///< along the depth; columns lie side by side
  float* c = nullptr;
  std::size_t c_row = 0;
};

/// Written once in products_loops.h.
struct ProductLoops {
  void (*product)(const SmallProduct& product);
  /// sums[i] = the sum of the squares of column i of `rows` rows of n floats, `step` floats apart.
  void (*squares)(const float* x, std::size_t rows, std::size_t n, std::size_t step, float* sums);
};

}  // namespace modelflow::cpu
