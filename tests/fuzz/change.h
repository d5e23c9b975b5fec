// Small changes to a model: what makes a pattern nearly but not quite what a rule looks for.
#pragma once

#include <string>

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

/// Makes one random change; the model may be invalid afterwards (then ONNX Runtime refuses it). Says which one, empty
/// where it found nothing to change. Types must be known before, and are not after it.
std::string change(Model& model, Dice& dice);

/// Every float32 of the model (inputs, constants, casts) becomes `dtype`.
void change_floats(Model& model, DType dtype);

/// What a model says of the shapes that nodes make is left out, inside of subgraphs too: after a change it may be a
/// lie.
void forget_shapes(Model& model);

}  // namespace modelflow::fuzz
