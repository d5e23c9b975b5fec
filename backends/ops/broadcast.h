// Broadcasting of two dims.
#pragma once

#include <optional>

#include "modelflow/shape.h"

namespace modelflow::ops {

/// What two dims that stand over each other broadcast to; nothing when they exclude each other.
inline std::optional<Dim> broadcast(const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  if (a.known() && b.known()) return std::nullopt;
  return a.known() ? a : b.known() ? b : Dim();  // a number other than 1 wins over what must be equal to it or 1
}

}  // namespace modelflow::ops
