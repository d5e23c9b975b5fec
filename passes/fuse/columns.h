// How many elements stand side by side in a tensor.
#pragma once

#include <optional>

#include "modelflow/shape.h"

namespace modelflow::passes {

/// How many elements stand side by side from this axis on; nothing where an extent is unknown.
inline std::optional<std::int64_t> elements_from(const Shape& shape, std::size_t axis) {
  std::int64_t product = 1;
  for (; axis < shape.rank(); ++axis) {
    const std::optional<std::int64_t> extent = shape[axis].number();
    if (!extent) return {};
    product *= *extent;
  }
  return product;
}

}  // namespace modelflow::passes
