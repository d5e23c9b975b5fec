// Functions of our domain that somebody else wrote.
#pragma once

#include <optional>

#include "modelflow/model.h"

namespace modelflow {

/// A model may bring functions of our domain that we did not write; passes, which go by names, would take them for
/// ours. Returns the model with the calls of such functions replaced by their bodies; nothing when it has none. Throws
/// Error(unsupported) when they cannot be replaced.
std::optional<Model> without_foreign_functions(const Model& model);

}  // namespace modelflow
