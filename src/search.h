// The search for what makes a result wrong: pass, rule, node, kernel.
#pragma once

#include <set>
#include <string>

#include "src/pipeline.h"
#include "src/verify/verifier.h"

namespace modelflow {

/// What is left out of the pipeline.
struct Without {
  std::set<std::string> names;    ///< passes and rules
  std::set<std::string> kernels;  ///< whose nodes are written as the bodies of their ops
};

/// Looks at one model after the other; a pass that throws is as wrong as one that miscalculates.
class Search {
 public:
  Search(const Model& original, const Pipeline& pipeline, const Verifier& verifier)
      : original_(original), pipeline_(pipeline), verifier_(verifier) {}

  Pipeline::Forms forms(const Without& without, Report& report) const;
  /// What these forms become: laid out, and runnable.
  Model laid_out(const Pipeline::Forms& forms, const Without& without, Report& report) const;
  Model runnable(const Pipeline::Forms& forms, const Without& without, Report& report) const;
  /// What comes of a model that is laid out.
  Outcome outcome(const Model& laid_out) const;

  /// Whether the model comes out wrong, or not at all, even when no pass runs.
  bool fails_without_passes(const Without& without) const;
  /// The rule, else the pass, and the node that make the model wrong as `found` says. Empty when there is none.
  Fault culprit(const Without& without, const Outcome& found) const;
  /// The kernel and the node; empty when reverting nodes does not help.
  Fault culprit_kernel(const Pipeline::Forms& forms, const Without& without, const Outcome& found) const;

 private:
  void revert_kernels(Model& fused, const Without& without) const;
  bool fails(const Pipeline& pipeline, const Without& without, const Outcome& found) const;
  void narrow_to_rule(const Pass& pass, const Without& without, const Outcome& found, Fault& fault) const;

  const Model& original_;
  const Pipeline& pipeline_;
  const Verifier& verifier_;
};

}  // namespace modelflow
