#pragma once

#include <set>
#include <string>

#include "src/pipeline.h"
#include "src/verify/verifier.h"

namespace modelflow {

/// What is left when everything that failed is switched off.
struct Corrected {
  Pipeline::Forms forms;
  std::set<std::string> disabled;  ///< passes that made the model wrong
  Outcome outcome;                 ///< of the fully fused form
};

/// Runs the pipeline and compares the result with the original. On a failure it searches for the fused node (when only
/// kernels are wrong) or the pass that is responsible, leaves it out, says so in the notes and tries again. Throws
/// Error(verification) when that does not end.
Corrected build_correct(const Model& original, const Options& options, const Pipeline& pipeline,
                        const Verifier& verifier, Report& report);

}  // namespace modelflow
