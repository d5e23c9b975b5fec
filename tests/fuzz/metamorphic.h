// The same model said otherwise: what is made of it must compute the same.
#pragma once

#include <string>

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

inline constexpr const char* kOtherNames = "other names";

/// Says `model` in another way, and which: other names for all that is no input or output, another order of nodes,
/// other spellings of weights and an Identity here and there, a part of it in an If or a function.
std::string say_otherwise(Model& model, Dice& dice);

}  // namespace modelflow::fuzz
