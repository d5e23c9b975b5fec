// Runs stages of passes over a model.
#pragma once

#include <memory>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// Runs stages over a model: every pass timed, counted, switchable by name and, in a checks build, verified.
///
///     Flow flow(options, runtime, report);
///     for (const Stage& stage : stages(options)) flow.run(model, stage);
class Flow {
 public:
  Flow(const Options& options, std::shared_ptr<Runtime> runtime, Report& report, const QuantizationPlan* plan = nullptr,
       RuleLimit* limit = nullptr, const std::map<std::string, Dims>* typical = nullptr)
      : options_(options),
        runtime_(std::move(runtime)),
        report_(report),
        plan_(plan),
        limit_(limit),
        typical_(typical) {}

  /// Returns the number of changes.
  int run(Model& model, const Stage& stage);

 private:
  int run_pass(Model& model, const Pass& pass, StepReport& step);

  const Options& options_;
  std::shared_ptr<Runtime> runtime_;
  Report& report_;
  const QuantizationPlan* plan_;
  RuleLimit* limit_;
  const std::map<std::string, Dims>* typical_;
  bool changed_ = false;  ///< since types were inferred: what an edit uncovers serves the next round
};

}  // namespace modelflow
