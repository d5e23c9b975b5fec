// One model put into another: a pattern reads values that are there already, where their types allow it.
#pragma once

#include <vector>

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

/// Copies what `pattern` computes into the main graph of `model`; each of its inputs becomes a value of `pool` of a
/// type that fits, or an input of the model. Symbols of the pattern become other symbols or numbers. Gives the
/// pattern's outputs.
std::vector<Value*> plant(Model& model, const Model& pattern, const std::vector<Value*>& pool, Dice& dice);

/// Values of the main graph that a node at its end may read, with known types.
std::vector<Value*> readable(Graph& graph);

}  // namespace modelflow::fuzz
