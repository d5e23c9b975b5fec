// Constants that are one number, and numbers that a constant may stand for.
#pragma once

#include <optional>
#include <string>

#include "modelflow/pattern.h"

namespace modelflow {

/// The number that every element of this constant is; nothing for other values.
std::optional<double> splat(const Value* value);

/// `value` is `number` as `dtype` rounds it.
bool is_rounded(double number, double value, DType dtype);

/// `value` is a product of `factors` float32 constants, each rounded once, that is meant to be `number`.
bool is_rounded_product(double number, double value, int factors);

/// "0.5", "Add", "Div or Mul", "x": what a pattern is looking for.
std::string wanted(const pattern::Tree& tree);

}  // namespace modelflow
