// Inner values of a model on samples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "src/verify/session.h"

namespace modelflow {

/// The model with these values of its main graph as outputs too.
Model with_outputs(const Model& model, const std::vector<std::string>& values);

/// The values in groups whose results fit into memory together. Extents that are not known are those that `sample`
/// leads to, which the model is run on for that.
std::vector<std::vector<std::string>> groups_in_memory(const Sessions& sessions, const Model& model,
                                                       const std::vector<std::string>& values, const Feeds& sample,
                                                       const SessionOptions& session);

/// Runs `model` on the first `most` samples and shows what these values of its main graph, none of them constant, came
/// to. The samples are gone through again for values that do not fit into memory together.
void see_values(const Sessions& sessions, const Model& model, const std::vector<std::string>& values,
                const CalibrationData& samples, std::size_t most, const SessionOptions& session,
                const std::function<void(const std::string& value, const Tensor& result)>& show);

}  // namespace modelflow
