// Functions of our domain that somebody else wrote.
#pragma once

#include <optional>

#include "modelflow/model.h"

namespace modelflow {

/// Nothing where all functions of our domain are those that we write; else the model with the calls of that domain
/// written out, for whoever goes by the names would take another's Conv for ours. Throws Error(unsupported) where they
/// cannot be.
std::optional<Model> without_foreign_functions(const Model& model);

}  // namespace modelflow
