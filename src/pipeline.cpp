// The stages on the way to each form of a model, run in order.
#include "src/pipeline.h"

#include <algorithm>

#include "src/emit/emit.h"
#include "src/flow/flow.h"
#include "src/measure/describe.h"
#include "src/measure/extract.h"

namespace modelflow {

std::vector<const Stage*> Route::stages() const {
  std::vector<const Stage*> all;
  for (const auto* part : {&portable, &fused, &equalized, &quantized, &laid_out})
    for (const Stage& stage : *part) all.push_back(&stage);
  return all;
}

Pipeline Pipeline::limited(RuleLimit& limit) const {
  Pipeline pipeline = *this;
  pipeline.limit_ = &limit;
  return pipeline;
}

Pipeline Pipeline::for_inputs(std::map<std::string, Dims> typical) const {
  Pipeline pipeline = *this;
  pipeline.typical_ = std::move(typical);
  return pipeline;
}

void Pipeline::run(Model& model, const std::vector<Stage>& stages, const std::set<std::string>& disabled,
                   Report& report, const QuantizationPlan* plan) const {
  Options options = options_;
  options.disabled.insert(disabled.begin(), disabled.end());
  Flow flow(options, runtime_, report, plan, limit_, &typical_);
  for (const Stage& stage : stages) flow.run(model, stage);
}

Pipeline::Forms Pipeline::fuse(const Model& original, const std::set<std::string>& disabled, Report& report) const {
  Forms forms{original, {}};
  const bool ours = std::ranges::any_of(original.functions, [](const Function& f) { return f.domain == kDomain; });
  absorb_functions(forms.portable);
  infer_types(forms.portable);
  report.before = report.after = ours ? stats(original) : typed_stats(forms.portable);
  run(forms.portable, route_.portable, disabled, report);
  if (route_.fused.empty()) return forms;
  forms.fused = forms.portable;
  run(*forms.fused, route_.fused, disabled, report);
  name_fused_nodes(*forms.fused);
  return forms;
}

Model Pipeline::equalize(Model fused, const QuantizationPlan& plan, const std::set<std::string>& disabled,
                         Report& report) const {
  run(fused, route_.equalized, disabled, report, &plan);
  return fused;
}

Model Pipeline::quantize(Model fused, const QuantizationPlan& plan, const std::set<std::string>& disabled,
                         Report& report) const {
  run(fused, route_.quantized, disabled, report, &plan);
  if (half_type(options_) == DType::undefined) return fused;
  std::vector<std::string> left;  // ops that have kernels for 16 bits alone, and stay in float32
  for (const Node* node : fused_nodes(fused.graph()))
    if (!choose_kernel(call_of(*node), options_.target).kernel) left.push_back(node->name);
  if (!left.empty()) revert(fused, left);
  return fused;
}

Model Pipeline::lay_out(Model fused, const std::set<std::string>& disabled, Report& report) const {
  run(fused, route_.laid_out, disabled, report);
  return fused;
}

Model Pipeline::emit(Model laid_out) {
  emit_functions(laid_out);
  return laid_out;
}

std::vector<const Pass*> Pipeline::passes(const std::set<std::string>& disabled) const {
  std::vector<const Pass*> list;
  std::set<std::string> seen = disabled;
  for (const Stage* stage : route_.stages())
    for (const Pass& pass : stage->passes)
      if (seen.insert(pass.name).second) list.push_back(&pass);
  return list;
}

}  // namespace modelflow
