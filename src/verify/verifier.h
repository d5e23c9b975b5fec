#pragma once

#include <memory>

#include "src/verify/compare.h"

namespace modelflow {

/// What one comparison found. `kernels_only`: the model is right without the plugin and wrong with it.
struct Outcome {
  bool ok = true, kernels_only = false;
  std::vector<OutputDiff> diffs;
  std::string why;
};

/// Runs the original once and compares any number of models with it.
class Verifier {
 public:
  Verifier(std::shared_ptr<Runtime> runtime, const Model& original, const Options& options,
           std::filesystem::path plugin);
  /// False when there is no runtime, the original does not run, or the user wants no verification.
  bool possible() const { return runtime_ && options_.verify && reference_.why_not.empty(); }
  const Reference& reference() const { return reference_; }
  Outcome check(const Model& runnable) const;
  /// For models that cannot be run on made-up data: false when the runtime loads the original and refuses `runnable`.
  bool loads(const Model& runnable, std::string& why) const;

 private:
  std::shared_ptr<Runtime> runtime_;
  const Model& original_;
  const Options& options_;
  std::filesystem::path plugin_;
  Reference reference_;
};

}  // namespace modelflow
