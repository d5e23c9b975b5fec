// Forms of a model in lower precision, made and measured.
#include "src/precision/trials.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "passes/graph/facts.h"
#include "src/measure/extract.h"
#include "src/precision/output_errors.h"
#include "src/precision/rounded.h"

namespace modelflow {
namespace {

bool touches_narrow(const Node& node) {
  const auto narrow = [](const Value* value) { return value && in_low_precision(*value); };
  return std::ranges::any_of(node.inputs(), narrow) || std::ranges::any_of(node.outputs(), narrow);
}

Precision precision_of(const Node& node, Precision asked) {
  if (asked != Precision::automatic) return asked;
  if (node.op().ends_with("Bf16")) return Precision::bf16;
  const bool by_rows = node.input(0)->dtype() == DType::f32 && node.attrs.number("a_scale", 0) == 0;
  return by_rows ? Precision::i8_dynamic : Precision::i8;
}

/// Of a model whose values are in 16 bits: what computes in them, less what moves them only, and what computes in fewer
/// or reads weights of fewer.
std::map<std::string, Precision> half_nodes(const Model& made, const Model& base, Precision asked, DType half) {
  std::map<std::string, const Node*> before;
  for (const auto& node : base.graph().nodes()) before.emplace(node->name, node.get());
  std::map<std::string, Precision> found;
  for (const auto& node : made.graph().nodes()) {
    const auto was = before.find(node->name);
    if (was == before.end() || !was->second->output() || !node->output()) continue;
    const FusedOp* op = fused_op(*node);
    const bool fewer = op && op->form != Form::f32 && was->second->op() != node->op();
    const bool changed = node->output()->dtype() == half && was->second->output()->dtype() != half;
    if (!(fewer || changed) || passes::is_view(*node) || node->is("Cast")) continue;
    found.emplace(node->name, fewer ? asked : half == DType::f16 ? Precision::f16 : Precision::bf16);
  }
  return found;
}

/// Fused nodes that compute in less than those of `base`: on numbers of 16 bits or fewer, or, where these never leave
/// the op, as another op. What came in lower precision is none.
std::map<std::string, Precision> lowered_nodes(Model& made, Model& base, Precision asked) {
  std::map<std::string, const Node*> before;
  for (const Node* node : fused_nodes(base.graph())) before.emplace(node->name, node);
  std::map<std::string, Precision> found;
  for (const Node* node : fused_nodes(made.graph())) {
    const auto was = before.find(node->name);
    if (was != before.end() && touches_narrow(*was->second)) continue;
    const bool changed = was != before.end() && was->second->op() != node->op();
    if (changed || touches_narrow(*node)) found.emplace(node->name, precision_of(*node, asked));
  }
  return found;
}

}  // namespace

bool in_low_precision(const Value& value) {
  const DType dtype = value.dtype();
  return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::bf16 || dtype == DType::f16;
}

Trials::Trials(const Lowering& work, const std::vector<Feeds>& synthetic)
    : work(work),
      samples(work.options, synthetic),
      reference(work.sessions, work.precise.original, samples.evaluation(), work.options.threads),
      base(work.precise.corrected.forms.whole()) {
  if (half_type(work.options) != DType::undefined) name_nodes(base);
}

bool Trials::measurable() const {
  return work.options.measure && work.options.target.is_host() && !work.plugin.empty() && !samples.evaluation().empty();
}

Trial Trials::make(Allowed allowed, std::size_t most_samples) {
  plan.allowed = std::move(allowed);
  Trial made;
  made.fused = work.pipeline.quantize(base, plan, work.precise.corrected.disabled, made.report);
  const DType half = half_type(work.options);
  made.lowered = half == DType::undefined ? lowered_nodes(made.fused, base, work.options.precision)
                                          : half_nodes(made.fused, base, work.options.precision, half);
  if (made.lowered.empty()) return made;
  made.runnable = runnable(made.fused);
  // ONNX Runtime takes Casts that round for part of a norm, which then is of two types: no kernel has that.
  const bool rounded = half != DType::undefined;
  const Model here = rounded ? rounded_in_float32(made.runnable, half) : made.runnable;
  // The portable form runs without the plugin.
  const bool portable = work.options.level == Level::O1;
  made.errors = reference.errors_of(here, portable ? std::filesystem::path() : work.plugin, most_samples, !rounded);
  made.drop = drop(made.errors, work.options.metric);
  return made;
}

Trial Trials::scored(Trial made) {
  const auto& score = work.options.score;
  if (!score || made.lowered.empty()) return made;
  if (!scored_) full_score_ = score(work.precise.original);
  scored_ = true;
  const double now = score(made.runnable);
  made.drop = full_score_ == 0 ? (now < 0 ? 100 : 0) : 100 * (full_score_ - now) / std::abs(full_score_);
  return made;
}

std::vector<Timing> Trials::time(const std::vector<const Model*>& models, double seconds) const {
  return time_models(work.sessions, models, samples.evaluation().front(), work.options, work.plugin,
                     {seconds, is_sure});
}

// The portable form has no use for another layout: its convolutions are standard ones.
Model Trials::runnable(const Model& fused) const {
  if (work.options.level == Level::O1) return Pipeline::emit(fused);
  Report scratch;
  return Pipeline::emit(work.pipeline.lay_out(fused, work.precise.corrected.disabled, scratch));
}

}  // namespace modelflow
