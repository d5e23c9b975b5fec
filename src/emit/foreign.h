#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// The model as it is where all functions of our domain are those that we write; else with the calls of that domain
/// written out, for whoever goes by the names would take another's Conv for ours. Throws Error(unsupported) where they
/// cannot be.
Model without_foreign_functions(Model model);

}  // namespace modelflow
