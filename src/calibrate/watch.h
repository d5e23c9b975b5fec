#pragma once

#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// The model with these values of its main graph as outputs too.
Model with_outputs(const Model& model, const std::vector<std::string>& values);

/// The values in groups whose results fit into memory together. Extents that are not known are those that `sample`
/// leads to, which the model is run on for that.
std::vector<std::vector<std::string>> groups_in_memory(Runtime& runtime, const Model& model,
                                                       const std::vector<std::string>& values, const Feeds& sample,
                                                       const SessionOptions& session);

}  // namespace modelflow
