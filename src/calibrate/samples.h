#pragma once

#include "modelflow/model.h"
#include "modelflow/modelflow.h"

namespace modelflow {

/// The same samples, each checked against the inputs of `model`, which has to outlive them: Error(usage) names the one
/// that does not fit, by its place in the user's data.
CalibrationData checked_samples(const Model& model, CalibrationData data);

/// Calibration sample number `index`, checked against the inputs of the model; none behind the last. Throws
/// Error(usage) with one line when it does not fit, when there is no data at all, or none for index 0.
std::optional<Feeds> calibration_sample(const Model& model, const Options& options, std::size_t index);

}  // namespace modelflow
