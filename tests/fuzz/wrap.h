// Parts of a model moved into branches, loops and functions.
#pragma once

#include <string>

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

/// Moves a random run of nodes of the main graph into an If, a Loop or a local function. Says which, empty where
/// nothing fits. `same`: it computes what it did, and has the same inputs and outputs. Types must be known before, and
/// are not after it.
std::string wrap(Model& model, Dice& dice, bool same = false);

}  // namespace modelflow::fuzz
