// How a matrix product is cut into tasks.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// How a product of [m, k] by [k, n] is cut into tasks: rows of A times panels of B.
struct ProductSplit {
  std::size_t rows = 1, panels = 1;
  std::size_t tasks() const { return rows * panels; }
};

struct ProductExtent {
  std::size_t m, n, k;
  std::size_t panel;            ///< columns of B that may not be parted
  double bytes;                 ///< of packed B
  std::size_t least_rows = 14;  ///< of a task
};

/// `wanted` tasks of one of them first, of the other where these do not suffice.
ProductSplit cut_product(std::size_t wanted, bool rows_first, std::size_t most_rows, std::size_t most_panels);

/// A product in low precision.
ProductSplit split_product(const ProductExtent& extent, std::size_t threads);

}  // namespace modelflow::cpu
