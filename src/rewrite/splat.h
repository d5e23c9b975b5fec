#pragma once

#include <optional>
#include <string>

#include "modelflow/pattern.h"

namespace modelflow {

/// The number that every element of this constant is; nothing for other values.
std::optional<double> splat(const Value* value);

/// Within the tolerance of a number pattern, and what rounding to `dtype` may have moved it.
bool near(const pattern::Tree& number, double value, DType dtype);

/// "0.5", "Add", "Div or Mul", "x": what a pattern is looking for.
std::string wanted(const pattern::Tree& tree);

}  // namespace modelflow
