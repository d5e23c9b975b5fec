// Parts of a model moved into branches, loops and functions.
#pragma once

#include <string>

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

/// Moves a random run of nodes of the main graph into an If, a Loop or a local function. Says which, empty where
/// nothing fits. Types must be known before, and are not after it.
std::string wrap(Model& model, Dice& dice);

}  // namespace modelflow::fuzz
