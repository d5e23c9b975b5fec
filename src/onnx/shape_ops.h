// Operators on lists of extents.
#pragma once

#include <string_view>

#include "modelflow/shape_values.h"

namespace modelflow {

/// One operator applied to lists of Dims.
struct ShapeArgs {
  ShapeValues& values;
  const Node& node;
  std::size_t output;
  const DimList* in(std::size_t i) const { return values.of(node.input(i)); }
};

struct ShapeOp {
  std::string_view name;
  std::optional<DimList> (*evaluate)(const ShapeArgs&);
};

/// Null: the operator says nothing about shapes.
const ShapeOp* find_shape_op(std::string_view op);

}  // namespace modelflow
