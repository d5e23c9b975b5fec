// Everything lowered as far as it goes.
#pragma once

#include "src/precision/trials.h"

namespace modelflow {

/// Everything lowered as far as it goes, with what samples tell put into trials.plan: weights that lose less
/// (trials.base), ranges, other roundings, corrected biases; each kept only where the whole loses less with it.
Trial fully_lowered(Trials& trials, Report& report);

}  // namespace modelflow
