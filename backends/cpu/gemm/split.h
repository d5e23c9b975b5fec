// How a matrix product in low precision is cut into tasks.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// How a product of [m, k] by [k, n] in low precision is cut into tasks: rows of A times panels of B.
struct ProductSplit {
  std::size_t rows = 1, panels = 1;
  std::size_t tasks() const { return rows * panels; }
};

struct ProductExtent {
  std::size_t m, n, k;
  std::size_t panel;  ///< columns of B that may not be parted
  double bytes;       ///< of packed B
};

ProductSplit split_product(const ProductExtent& extent, std::size_t threads);

}  // namespace modelflow::cpu
