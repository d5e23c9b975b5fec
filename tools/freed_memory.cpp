// The thresholds of malloc, by the size of the model's weights.
#include "freed_memory.h"

#include <malloc.h>

#include <algorithm>
#include <climits>

namespace modelflow::tools {
namespace {

/// malloc comes to keep this much by itself (M_TRIM_THRESHOLD in mallopt(3), twice the largest M_MMAP_THRESHOLD).
constexpr std::size_t kKeptAnyway = 64 << 20;

std::size_t weight_bytes(const Model& model) {
  std::size_t sum = 0;
  for (const Value* weight : model.graph().initializers())
    if (weight->dtype() != DType::string) sum += weight->initializer()->bytes();
  return sum;
}

}  // namespace

void keep_freed_memory(const Model& model) {
  const std::size_t bytes = std::min<std::size_t>(weight_bytes(model), INT_MAX);
  if (bytes <= kKeptAnyway) return;
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(bytes));
}

}  // namespace modelflow::tools
