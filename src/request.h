// What is asked for, before any work is done.
#pragma once

#include "modelflow/modelflow.h"

namespace modelflow {

/// The options as they are meant for this model: data to verify with, whether there is something to measure, limits
/// that are looked at whenever a step is told. Throws Error(usage) for what makes no sense (numbers, names, shapes,
/// levels) and Error(unsupported) for what this machine or build has not.
Options accepted(Options options, const Model& model);

/// Every step that is told to the caller is from now on also where the limits are looked at.
void watch_limits(Options& options);

}  // namespace modelflow
