// Axes and shapes when channels are last.
#include "passes/graph/channels_last.h"

namespace modelflow::passes {

Ints to_last(std::size_t rank) {
  Ints perm = {0};
  for (std::size_t i = 2; i < rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
  perm.push_back(1);
  return perm;
}

Ints to_first(std::size_t rank) {
  Ints perm = {0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t i = 1; i + 1 < rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
  return perm;
}

std::int64_t last_axis(std::int64_t axis, std::size_t rank) {
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  if (axis == 1) return static_cast<std::int64_t>(rank) - 1;
  return axis > 1 ? axis - 1 : axis;
}

Shape last_shape(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() < 3) return shape;
  std::vector<Dim> dims;
  for (std::int64_t axis : to_last(shape.rank())) dims.push_back(shape[static_cast<std::size_t>(axis)]);
  return Shape(std::move(dims));
}

std::string last_name(const std::string& plain) { return plain + "_nhwc"; }

}  // namespace modelflow::passes
