// The original and whatever is made of it, run against each other.
#pragma once

#include <memory>

#include "src/verify/compare.h"

namespace modelflow {

/// What one comparison found. `kernels_only`: the model is right without the plugin and wrong with it.
struct Outcome {
  bool ok = true, kernels_only = false;
  std::vector<OutputDiff> diffs = {};
  std::string why = {};   ///< not ok: in words
  std::string feed = {};  ///< not ok: the feed that shows it, if one does
  OutputDiff fault = {};  ///< not ok: the output that shows it
  std::string note = {};  ///< what stock ONNX Runtime does to the original
};

/// Runs the original once and compares any number of models with it.
class Verifier {
 public:
  /// `feeds`: to compare on; none: the user's, else made-up ones.
  Verifier(std::shared_ptr<Runtime> runtime, const Model& original, const Options& options,
           std::filesystem::path plugin, std::vector<Feed> feeds = {});
  /// False when there is no runtime, the original does not run, or the user wants no verification.
  bool possible() const { return runtime_ && options_.verify && reference_.why_not.empty(); }
  const Reference& reference() const { return reference_; }
  Runtime& runtime() const { return *runtime_; }
  /// Those that compare with the original, and all others on models that share its weights.
  Sessions sessions() const { return {*runtime_, reference_.folder.get()}; }
  /// One for another original and these feeds, with the same options and plugin. Both stay with the caller.
  Verifier for_feeds(const Model& original, std::vector<Feed> feeds) const {
    return Verifier(runtime_, original, options_, plugin_, std::move(feeds));
  }
  Outcome check(const Model& runnable) const;
  /// Whether this model, too, has the fault that `found` says, or another one on the same feed.
  bool shares_fault(const Model& runnable, const Outcome& found) const;
  /// The first node of the original whose result `runnable` computes otherwise on the feed of `found`.
  std::string first_wrong_node(const Model& runnable, const Outcome& found) const;
  /// The feed that `found` says; null where the fault needs none.
  const Feed* feed_of(const Outcome& found) const;
  /// For models that cannot be run on made-up data: false when the runtime loads the original and refuses `runnable`.
  bool still_loads(const Model& runnable, std::string& why) const;
  /// Whether ONNX Runtime, its own optimizations on, loads the original.
  bool original_loads(std::string& why) const;

 private:
  /// Else nothing but the run without it tells what the model is worth.
  bool has_use_for_plugin(const Model& runnable) const;
  std::filesystem::path plugin_for(const Outcome& found) const { return found.kernels_only ? plugin_ : ""; }

  std::shared_ptr<Runtime> runtime_;
  const Model& original_;
  const Options& options_;
  std::filesystem::path plugin_;
  Reference reference_;
};

}  // namespace modelflow
