// Ranges of values, from samples.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "src/verify/session.h"

namespace modelflow {

struct ObservedRanges {
  Observer observer;
  Ranges ranges;
};

/// Runs `runnable` (functions emitted) on options.calibration and says what these values of its main graph were, as
/// options.observer sees it: one set of ranges, or one of each observer that may be the best where the choice is left
/// to us. Left out are values that are not float32, have rank 0, were never finite or hold
/// numbers that stand for infinity. The plugin is registered when the
/// model uses our domain. Memory stays bounded: the results of some values at a time are kept, and the samples are gone
/// through again for the others. Stops with what it has when options.max_seconds are used up. Notes and the number of
/// samples go into the report. Throws Error(usage) for data that does not fit.
std::vector<ObservedRanges> calibrate(const Sessions& sessions, const Model& runnable,
                                      const std::vector<std::string>& values, const Options& options,
                                      const std::filesystem::path& plugin, Report& report);

}  // namespace modelflow
