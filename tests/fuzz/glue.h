// Single ops between patterns: what real models have around what we recognise.
#pragma once

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

/// Adds one random op (or two that belong together) that reads `value` and, if it takes two, others of `pool`. Gives
/// its result, or null where nothing fits. Types must be known; the result's are not inferred.
Value* add_glue(Model& model, Value& value, const std::vector<Value*>& pool, Dice& dice);

/// A constant of random floats in the type of a value.
Tensor random_floats(DType dtype, const Dims& dims, double low, double high, Dice& dice);

}  // namespace modelflow::fuzz
