// 8-bit numbers from signed to unsigned and back.
#pragma once

#include <cstdint>

#include "modelflow/graph.h"

namespace modelflow {

/// int8 numbers are unsigned ones with a zero point that is so much more (passes/quantize/import.cpp).
constexpr std::int32_t kToUnsigned = 128;

/// x + shift as another type, computed in int32 in front of `before`; null: behind all nodes.
Value& shifted(Graph& graph, Value& x, std::int32_t shift, DType to, Node* before = nullptr);

}  // namespace modelflow
