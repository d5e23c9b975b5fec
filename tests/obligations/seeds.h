// Where mutants come from: the text cases of the passes, and models planted from the patterns of rules.
#pragma once

#include <vector>

#include "tests/obligations/judge.h"

namespace modelflow::obligations {

/// The models in front of the passes of tests/passes/*.onnxtxt.
std::vector<Seed> written_seeds();
/// For passes that go by what calibration saw, once: text cases are run until nothing changes.
std::vector<Seed> calibrated_seeds();
/// A few models for every rule in which it fires, grown from its pattern: other spellings than the cases have.
std::vector<Seed> planted_seeds(unsigned long long number, int draws);

/// Every pass that any of the precisions runs.
std::vector<Pass> every_pass();

}  // namespace modelflow::obligations
