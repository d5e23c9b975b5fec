// What of a model the caller wants: inputs that are settled, outputs that are read.
#pragma once

#include "modelflow/modelflow.h"

namespace modelflow {

/// The model with Options::bind, outputs and drop_outputs done, and the options without what that settled: data for
/// inputs that are gone. `notes`: what was done, in words.
Model specialized(Model model, Options& options, std::vector<std::string>& notes);

}  // namespace modelflow
