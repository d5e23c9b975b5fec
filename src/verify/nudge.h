// Numbers some last digits away: what rounding alone may do to a result.
#pragma once

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// In the first tries all numbers go one way, so that decisions (values half-way between two steps) come out both ways
/// however many there are; where numbers cancel each other, the others, at random, show a decision both ways but once
/// in 250 times.
constexpr unsigned kNudges = 12;

/// Every float32 and float64 so many last digits of float32 up or down, another way for each `seed`. Numbers at the end
/// of the range stay: they are masks, not results of anything that was rounded. So do inputs of the model that decide
/// extents.
Feeds nudged(const Model& model, const Feeds& feeds, double digits, unsigned seed);

/// The same for the model's constants, such as weights and scales.
Model with_nudged_constants(const Model& model, double digits, unsigned seed);

/// Whether the last digits of the value decide extents of results (a factor of Resize), or whether there is a result.
bool decides_extents_or_domain(const Value& value);

}  // namespace modelflow
