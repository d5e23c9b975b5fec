// Joins axes that stay neighbours when their order changes.
#include "backends/ops/moved_axes.h"

namespace modelflow::ops {

std::vector<MovedAxis> moved_axes(std::span<const std::int64_t> dims, const Ints& perm) {
  std::vector<std::size_t> steps(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) steps[i - 1] = steps[i] * static_cast<std::size_t>(dims[i]);
  std::vector<MovedAxis> axes;
  for (const std::int64_t axis : perm) {
    const auto from = static_cast<std::size_t>(axis), extent = static_cast<std::size_t>(dims[from]);
    if (extent == 1) continue;
    if (!axes.empty() && axes.back().x == steps[from] * extent) {
      axes.back() = {axes.back().extent * extent, steps[from], 1};
    } else {
      axes.push_back({extent, steps[from], 1});
    }
  }
  for (std::size_t i = axes.size(); i > 1; --i) axes[i - 2].y = axes[i - 1].y * axes[i - 1].extent;
  return axes;
}

}  // namespace modelflow::ops
