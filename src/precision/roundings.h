// Compensated roundings for all products of a model.
#pragma once

#include <map>
#include <string>

#include "modelflow/pass.h"
#include "src/precision/intermediates.h"
#include "src/verify/session.h"

namespace modelflow {

using Roundings = std::map<std::string, Rounding, std::less<>>;

/// New weights for each product whose weights are rounded in `quantized`: in the same scales, but rounded so that their
/// errors cancel on what the samples feed it in `reference`, the fused float model with nodes of the same names. Each
/// product alone: which of them stay in float later makes no difference. `runnable` is `reference` with its functions
/// emitted.
Roundings roundings(const Sessions& sessions, const Model& reference, const Model& runnable, const Model& quantized,
                    const CalibrationData& samples, const SessionOptions& session);

}  // namespace modelflow
