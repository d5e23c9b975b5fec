// What type inference says of values against what they are where the model runs.
#pragma once

#include <string>

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow::obligations {

/// The first value whose extents are not those that inference says: "'t' is said to be [2*N,4] and is [0,4]".
std::string misjudged(Runtime& runtime, const Model& model, const Feeds& feeds);

/// True where an input has no elements.
bool has_empty(const Feeds& feeds);

}  // namespace modelflow::obligations
