// Parts of the last axis, as rotary position embedding takes them.
#pragma once

#include <optional>
#include <utility>

#include "modelflow/graph.h"

namespace modelflow::passes {

/// Some elements of the last axis of `x`: length of them from `start` on, every `step`th.
struct LastAxisPart {
  Value* x = nullptr;
  std::int64_t start = 0, length = 0, step = 1;
};
/// Reads a Slice or Split along the last axis, whose extent is known; nothing for other values.
std::optional<LastAxisPart> read_part(const Value& value);

/// x with the elements of each pair exchanged and the first of them negated: halves, or neighbours (interleaved).
struct Crossed {
  Value* x = nullptr;
  bool interleaved = false;
  std::int64_t covered = 0;  ///< elements of x
};
std::optional<Crossed> read_crossed(const Value& value);

/// Two values behind each other in a new last axis, then flattened into the one before: what alternates in `value`.
std::optional<std::pair<Value*, Value*>> read_stack(const Value& value);

bool joins_last_axis(const Node& node);

}  // namespace modelflow::passes
