// Integers that count along axes, as the indices of a Gather do.
#pragma once

#include "modelflow/shape_values.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

/// Integers that grow by the same step along each axis, from 0: the step by axis.
using Steps = std::vector<Dim>;

/// Of constant integers of these extents.
std::optional<Steps> steps_of(const Ints& values, const Dims& dims);

/// How values count: constants, Range, and what views, sums and products by one number make of them.
class Counting {
 public:
  explicit Counting(const Context& context) : extents_(context.model.ir_version) {}

  /// By axis of the value; nothing where it is not known to count.
  std::optional<Steps> of(const Value& value, int depth = 0);

 private:
  std::optional<Steps> of_view(const Value& value, int depth);
  std::optional<Steps> of_product(const Value& value, int depth);
  std::optional<Steps> of_sum(const Value& value, int depth);

  ShapeValues extents_;
};

}  // namespace modelflow::passes
