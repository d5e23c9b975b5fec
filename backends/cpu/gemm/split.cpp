// Cuts a matrix product into tasks so that threads read as little as possible twice.
#include "backends/cpu/gemm/split.h"

#include <algorithm>

#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {

// What is larger, rows of A or columns of B, is cut, so that each number of it is read by one core only. A few tasks
// per thread even out noise on busy machines.
ProductSplit split_product(const ProductExtent& e, std::size_t threads) {
  const double steps = static_cast<double>(e.m) * static_cast<double>(e.n) * static_cast<double>(e.k);
  const double worth = std::max(steps / 1e6, e.bytes / 65536);  // about 4 microseconds each
  if (threads == 1 || worth < 2) return {};
  const std::size_t wanted = even_tasks(std::min(threads * 3, static_cast<std::size_t>(worth)), threads);
  const std::size_t most_panels = (e.n + e.panel - 1) / e.panel, most_rows = std::max<std::size_t>(e.m / 14, 1);
  ProductSplit s;
  if (e.n <= e.m) {
    s.rows = std::min(most_rows, wanted);
    s.panels = std::min(most_panels, (wanted + s.rows - 1) / s.rows);
  } else {
    s.panels = std::min(most_panels, wanted);
    s.rows = std::min(most_rows, (wanted + s.panels - 1) / s.panels);
  }
  return s;
}

}  // namespace modelflow::cpu
