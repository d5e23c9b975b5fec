// How large a value of a graph can be at most.
#pragma once

#include <optional>

#include "modelflow/graph.h"

namespace modelflow {

/// The largest magnitude that the elements of this value can have, where the ops that it comes from say so: 1 behind a
/// Sigmoid, Softmax or Tanh, also when it was moved, multiplied with another such value or made smaller since.
std::optional<double> bound_of(const Value& value);

/// What a difference of such elements may be whatever they are, two last digits of the bound in float32; 0 where there
/// is no bound.
double floor_of(const Value& value);

}  // namespace modelflow
