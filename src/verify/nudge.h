// Numbers some last digits away: what rounding alone may do to a result.
#pragma once

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// As many tries show a decision (a value half-way between two steps) both ways but once in 250 times.
constexpr unsigned kNudges = 8;

/// Every float32 and float64 so many last digits of float32 up or down, another way for each `seed`. Numbers at the end
/// of the range stay: they are masks, not results of anything that was rounded.
Feeds nudged(const Feeds& feeds, double digits, unsigned seed);

/// The same for the model's constants, such as weights and scales, but for those that decide extents.
Model with_nudged_constants(const Model& model, double digits, unsigned seed);

}  // namespace modelflow
