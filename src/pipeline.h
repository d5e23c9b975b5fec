// A model's way through the stages: what is done to it, by the form that it has then.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// The stages on the way to each form of a model, in running order. Every form is made of the one before.
struct Route {
  std::vector<Stage> portable = {};   ///< cleaned up
  std::vector<Stage> fused = {};      ///< fused ops in plain layout; none: the portable form is the last
  std::vector<Stage> equalized = {};  ///< with other weights that compute the same and lose less in lower precision
  std::vector<Stage> quantized = {};  ///< in the precision that the options ask for
  std::vector<Stage> laid_out = {};   ///< ready to be emitted

  std::vector<const Stage*> stages() const;  ///< of all forms
};
/// The way that these options ask for.
Route route(const Options& options);

/// Makes the forms. Selection and verification go through the end of the way again with fewer nodes fused, the
/// bisection through all of it with passes switched off.
class Pipeline {
 public:
  Pipeline(const Options& options, std::shared_ptr<Runtime> runtime)
      : Pipeline(options, std::move(runtime), modelflow::route(options)) {}
  Pipeline(const Options& options, std::shared_ptr<Runtime> runtime, Route route)
      : options_(options), runtime_(std::move(runtime)), route_(std::move(route)) {}
  /// The same, with one rule firing only as often as `limit` says.
  Pipeline limited(RuleLimit& limit) const;

  /// The same, with costs for inputs of these extents.
  Pipeline for_inputs(std::map<std::string, Dims> typical) const;

  const Options& options() const { return options_; }

  /// Extents of the inputs, for costs.
  const std::map<std::string, Dims>& typical() const { return typical_; }

  struct Forms {
    Model portable;
    std::optional<Model> fused;  ///< its fused nodes have names of their own
    /// All that is done before layout: without stages that fuse the portable form.
    const Model& whole() const { return fused ? *fused : portable; }
  };
  /// `disabled`: passes and rules to leave out besides those of the options. The report says what the original holds.
  Forms fuse(const Model& original, const std::set<std::string>& disabled, Report& report) const;
  Model equalize(Model fused, const QuantizationPlan& plan, const std::set<std::string>& disabled,
                 Report& report) const;
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
  Route route_;
  RuleLimit* limit_ = nullptr;
  std::map<std::string, Dims> typical_;
};

}  // namespace modelflow
