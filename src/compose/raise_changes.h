// What operators became in newer opsets, where the older form does not hold there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

namespace modelflow {

/// From this opset on the operator has another form or meaning: `apply` brings a node of the opset before into it. An
/// operator without changes keeps its form in all opsets from 7 on (a test asks the schemas).
struct Change {
  std::string_view op;
  std::int64_t opset;
  Verdict (*apply)(Node& node);
};

/// In the order of opsets.
std::span<const Change> changes();

/// What was the attribute `name` becomes input `index`.
Verdict ints_to_input(Node& node, const char* name, std::size_t index);

}  // namespace modelflow
