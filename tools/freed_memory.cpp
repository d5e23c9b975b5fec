// The thresholds of malloc, by the size of the model's weights.
#include "freed_memory.h"

#include <malloc.h>

#include <algorithm>
#include <climits>

#include "src/onnx/file.h"

namespace modelflow::tools {
namespace {

/// malloc comes to keep this much by itself (M_TRIM_THRESHOLD in mallopt(3), twice the largest M_MMAP_THRESHOLD).
constexpr std::size_t kKeptAnyway = 64 << 20;

}  // namespace

void keep_freed_memory(const Model& model) {
  const std::size_t bytes = std::min<std::size_t>(weight_bytes(model.graph()), INT_MAX);
  if (bytes <= kKeptAnyway) return;
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(bytes));
}

}  // namespace modelflow::tools
