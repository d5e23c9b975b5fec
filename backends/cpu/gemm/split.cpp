// Cuts a matrix product into tasks so that threads read as little as possible twice.
#include "backends/cpu/gemm/split.h"

#include <algorithm>

#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {

ProductSplit cut_product(std::size_t wanted, bool rows_first, std::size_t most_rows, std::size_t most_panels) {
  ProductSplit s;
  std::size_t &first = rows_first ? s.rows : s.panels, &second = rows_first ? s.panels : s.rows;
  const std::size_t most_first = rows_first ? most_rows : most_panels,
                    most_second = rows_first ? most_panels : most_rows;
  first = std::min(most_first, wanted);
  second = std::min(most_second, (wanted + first - 1) / first);
  return s;
}

// What is larger, rows of A or columns of B, is cut, so that each number of it is read by one core only. A few tasks
// per thread even out noise on busy machines.
ProductSplit split_product(const ProductExtent& e, std::size_t threads) {
  const double steps = static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k);
  const double worth = std::max(steps / 1e6, e.bytes / 65536);  // about 4 microseconds each
  if (threads == 1 || worth < 2) return {};
  const std::size_t wanted = even_tasks(std::min(threads * 3, static_cast<std::size_t>(worth)), threads);
  return cut_product(wanted, e.n <= e.m, std::max<std::size_t>(e.m / e.least_rows, 1), (e.n + e.panel - 1) / e.panel);
}

}  // namespace modelflow::cpu
