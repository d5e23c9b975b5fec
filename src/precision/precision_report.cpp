// The report about lower precision filled in.
#include "src/precision/precision_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/precision/op_errors.h"

namespace modelflow {
namespace {

std::map<std::string, std::size_t> counts(const Trial& made) {
  std::map<std::string, std::size_t> by_precision;
  for (const auto& [node, precision] : made.lowered) ++by_precision[std::string(name(precision))];
  return by_precision;
}

}  // namespace

PrecisionReport::PrecisionReport(const Trials& trials, Report& report) : trials_(trials), report_(report) {
  if (!report_.quantization) report_.quantization.emplace();
  QuantizationReport& q = *report_.quantization;
  const Options& options = trials.work.options;
  q.precision = name(options.precision);
  q.metric = options.score ? "score" : name(options.metric);
  q.max_drop = options.max_drop;
  for (const auto& node : trials.base.graph().nodes()) float_ops_[node->name] = node->op();
}

void PrecisionReport::list(const Trial& all) {
  std::vector<QuantizedReport>& rows = report_.quantization->ops;
  for (const auto& [node, precision] : all.lowered)
    if (float_ops_.contains(node) && std::ranges::count(rows, node, &QuantizedReport::node) == 0)
      rows.push_back({.node = node, .op = "", .precision = "", .sqnr = {}, .reason = ""});
  std::map<std::string, std::size_t> place;
  for (const auto& node : trials_.base.graph().nodes()) place.emplace(node->name, place.size());
  std::ranges::sort(rows, {}, [&](const QuantizedReport& row) { return place.at(row.node); });
}

void PrecisionReport::note(const Trial& made, double speedup) {
  std::vector<FrontierPoint>& frontier = report_.quantization->frontier;
  frontier.push_back({made.lowered.size(), judged_drop(made), speedup, counts(made)});
  std::ranges::stable_sort(frontier, std::greater(), &FrontierPoint::quantized);
}

void PrecisionReport::describe(const Trial& chosen, const std::map<std::string, std::string>& why) {
  QuantizationReport& q = *report_.quantization;
  q.drop = judged_drop(chosen);
  q.outputs = chosen.errors;
  std::map<std::string, std::string> ops;
  for (const auto& node : chosen.fused.graph().nodes()) ops[node->name] = node->op();
  const std::map<std::string, double> errors = errors_of_ops(chosen);
  for (QuantizedReport& row : q.ops) {
    const auto lowered = chosen.lowered.find(row.node);
    row.op = lowered == chosen.lowered.end() ? float_ops_.at(row.node) : ops.at(row.node);
    row.precision = lowered == chosen.lowered.end() ? "float32" : name(lowered->second);
    const auto reason = why.find(row.node);
    row.reason = reason == why.end() ? "" : reason->second;
    if (const auto found = errors.find(row.node); found != errors.end()) row.sqnr = found->second;
  }
  for (FrontierPoint& point : q.frontier)
    point.chosen = point.precisions == counts(chosen) && (point.drop == q.drop || std::isnan(q.drop));
}

void PrecisionReport::refuse(const std::string& why) {
  QuantizationReport& q = *report_.quantization;
  for (QuantizedReport& row : q.ops)
    row = {.node = row.node,
           .op = float_ops_.at(row.node),
           .precision = "float32",
           .sqnr = {},
           .reason = row.reason.empty() || row.precision != "float32" ? why : row.reason};
  q.drop = 0;
  q.outputs.clear();
  for (FrontierPoint& point : q.frontier) point.chosen = false;
}

/// NaN where nothing was run and no score says it.
double PrecisionReport::judged_drop(const Trial& made) const {
  const bool judged = trials_.work.options.score || !trials_.samples.evaluation().empty() || made.lowered.empty();
  return judged ? made.drop : std::numeric_limits<double>::quiet_NaN();
}

/// Nothing is known of them where nobody wants the model run.
std::map<std::string, double> PrecisionReport::errors_of_ops(const Trial& made) const {
  if (trials_.samples.evaluation().empty()) return {};
  return op_errors(trials_.work.sessions, {trials_.base, Pipeline::emit(trials_.base)},
                   {made.fused, Pipeline::emit(made.fused)}, trials_.samples.evaluation().front(),
                   {.threads = trials_.work.options.threads});
}

}  // namespace modelflow
