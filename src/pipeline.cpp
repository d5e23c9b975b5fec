#include "src/pipeline.h"

#include <algorithm>

#include "passes/passes.h"
#include "src/emit/emit.h"
#include "src/flow/flow.h"
#include "src/measure/describe.h"
#include "src/measure/extract.h"

namespace modelflow {
namespace {

using Stages = std::vector<Stage>;

Stages::const_iterator find(const Stages& stages, std::string_view name) {
  return std::find_if(stages.begin(), stages.end(), [&](const Stage& stage) { return stage.name == name; });
}

}  // namespace

Pipeline::Pipeline(const Options& options, std::shared_ptr<Runtime> runtime)
    : Pipeline(options, std::move(runtime), passes::running_order(options)) {}

Pipeline Pipeline::limited(RuleLimit& limit) const {
  Pipeline pipeline = *this;
  pipeline.limit_ = &limit;
  return pipeline;
}

void Pipeline::run(Model& model, const std::vector<Stage>& stages, const std::set<std::string>& disabled,
                   Report& report, const QuantizationPlan* plan) const {
  Options options = options_;
  options.disabled.insert(disabled.begin(), disabled.end());
  Flow flow(options, runtime_, report, plan, limit_);
  for (const Stage& stage : stages) flow.run(model, stage);
}

Pipeline::Forms Pipeline::fuse(const Model& original, const std::set<std::string>& disabled, Report& report) const {
  const Stages& stages = stages_;
  Forms forms{original, {}};
  const bool ours = std::ranges::any_of(original.functions, [](const Function& f) { return f.domain == kDomain; });
  absorb_functions(forms.portable);
  infer_types(forms.portable);
  report.before = report.after = ours ? stats(original) : typed_stats(forms.portable);
  if (stages.empty()) return forms;
  run(forms.portable, {stages.front()}, disabled, report);
  if (stages.size() == 1) return forms;
  forms.fused = forms.portable;
  run(*forms.fused, {stages.begin() + 1, find(stages, "equalize")}, disabled, report);
  name_fused_nodes(*forms.fused);
  return forms;
}

Model Pipeline::equalize(Model fused, const QuantizationPlan& plan, const std::set<std::string>& disabled,
                         Report& report) const {
  run(fused, {*find(stages_, "equalize")}, disabled, report, &plan);
  return fused;
}

Model Pipeline::quantize(Model fused, const QuantizationPlan& plan, const std::set<std::string>& disabled,
                         Report& report) const {
  run(fused, {*find(stages_, "quantize")}, disabled, report, &plan);
  return fused;
}

Model Pipeline::lay_out(Model fused, const std::set<std::string>& disabled, Report& report) const {
  const auto quantize = find(stages_, "quantize");
  if (quantize != stages_.end()) run(fused, {quantize + 1, stages_.end()}, disabled, report);
  return fused;
}

Model Pipeline::emit(Model laid_out) {
  emit_functions(laid_out);
  return laid_out;
}

std::vector<const Pass*> Pipeline::passes(const std::set<std::string>& disabled) const {
  std::vector<const Pass*> list;
  std::set<std::string> seen = disabled;
  for (const Stage& stage : stages_)
    for (const Pass& pass : stage.passes)
      if (seen.insert(pass.name).second) list.push_back(&pass);
  return list;
}

}  // namespace modelflow
