// What operators became in newer opsets, where the older form does not hold there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

namespace modelflow {

/// From this opset on the operator has another form or meaning: `apply` brings a node of the opset before into it. An
/// operator without changes keeps its form in all opsets from 7 on (tests/outside/test_compose.py asks the schemas).
struct Change {
  std::string_view op;
  std::int64_t opset;
  Verdict (*apply)(Node& node);
};

/// In the order of opsets.
std::span<const Change> changes();
}  // namespace modelflow
