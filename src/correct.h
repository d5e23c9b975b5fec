// A model that is right: what makes it wrong is searched for and left out.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "src/pipeline.h"
#include "src/verify/verifier.h"

namespace modelflow {

/// What is left when everything that failed is switched off.
struct Corrected {
  Pipeline::Forms forms;
  std::optional<Model> laid_out;   ///< the fused form, ready to be emitted; none where forms have none
  std::set<std::string> disabled;  ///< rules and passes that made the model wrong
  std::set<std::string> kernels;   ///< kernels that did: their nodes are plain ops in forms.fused
  Outcome outcome;                 ///< of the fully fused form
};

/// Runs the pipeline and compares the result with the original. On a failure it searches for the kernel (when only
/// kernels are wrong), rule or pass that is responsible and the node that shows it, leaves it out everywhere, says so
/// in the report and tries again. Throws Error(verification) when that does not end.
Corrected build_correct(const Model& original, const Options& options, const Pipeline& pipeline,
                        const Verifier& verifier, Report& report);

}  // namespace modelflow
