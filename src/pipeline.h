#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// The stages up to the fused ops, and from there on: selection and verification go through the second half again with
/// fewer nodes fused, the bisection through both with passes switched off.
class Pipeline {
 public:
  Pipeline(const Options& options, std::shared_ptr<Runtime> runtime);
  /// With other stages than passes/ has; they must have the same names.
  Pipeline(const Options& options, std::shared_ptr<Runtime> runtime, std::vector<Stage> stages)
      : options_(options), runtime_(std::move(runtime)), stages_(std::move(stages)) {}
  /// The same, with one rule firing only as often as `limit` says.
  Pipeline limited(RuleLimit& limit) const;

  const Options& options() const { return options_; }

  struct Forms {
    Model portable;              ///< clean-ups only
    std::optional<Model> fused;  ///< everything fused, plain layout; fused nodes have names of their own
    /// All that is done before layout: without stages that fuse the portable form.
    const Model& whole() const { return fused ? *fused : portable; }
  };
  /// `disabled`: passes and rules to leave out besides those of the options. The report says what the original holds.
  Forms fuse(const Model& original, const std::set<std::string>& disabled, Report& report) const;
  /// The fused model with other weights that compute the same and lose less in lower precision.
  Model equalize(Model fused, const QuantizationPlan& plan, const std::set<std::string>& disabled,
                 Report& report) const;
  /// The fused model in the precision that the options ask for.
  Model quantize(Model fused, const QuantizationPlan& plan, const std::set<std::string>& disabled,
                 Report& report) const;
  Model lay_out(Model fused, const std::set<std::string>& disabled, Report& report) const;
  /// Fused nodes become calls of local functions: what runtimes load.
  static Model emit(Model laid_out);
  /// The passes that may change a model, in running order, each once.
  std::vector<const Pass*> passes(const std::set<std::string>& disabled) const;

 private:
  void run(Model& model, const std::vector<Stage>& stages, const std::set<std::string>& disabled, Report& report,
           const QuantizationPlan* plan = nullptr) const;

  const Options& options_;
  std::shared_ptr<Runtime> runtime_;
  std::vector<Stage> stages_;
  RuleLimit* limit_ = nullptr;
};

}  // namespace modelflow
