// A model in lower precision from beginning to end: plan, choice, verification, time.
#include "src/precision/lower_precision.h"

#include "src/measure/select.h"
#include "src/measure/sides.h"
#include "src/onnx/operators.h"
#include "src/precision/choose.h"
#include "src/precision/plan.h"
#include "src/precision/precision_report.h"
#include "src/precision/trials.h"

namespace modelflow {
namespace {

/// Two correct runs of a quantized model drift apart (one float more or less decides a rounding, and the next layer
/// sees a step), but neither is further from the original than the other.
std::string kernels_differ(const Trials& trials, const Trial& made) {
  if (trials.work.plugin.empty()) return "";
  const std::vector<OutputError> bodies = trials.reference.errors_of(made.runnable, "");
  for (std::size_t i = 0; i < bodies.size(); ++i)
    if (made.errors[i].relative_l2 > 1e-3 + 1.5 * bodies[i].relative_l2)
      return "output '" + bodies[i].output + "' of the quantized model is off by " +
             std::to_string(made.errors[i].relative_l2) + " with our kernels and by " +
             std::to_string(bodies[i].relative_l2) + " without them";
  return "";
}

bool is_faster(const Trials& trials, const Trial& made, Report& report) {
  const Precise& precise = trials.work.precise;
  const Model fallback = inline_functions(made.runnable);
  const std::vector<Timing> timing = trials.time({&precise.fastest, &made.runnable, &precise.original, &fallback},
                                                 std::min(trials.work.options.max_seconds, 12.0));
  const Timing &lowered = timing[1], &stock = timing[2];
  if (lowered.speedup < kWorthwhile || lowered.low < kNotSlower) return false;
  report.stock_ms = stock.seconds * 1e3;
  report.optimized_ms = lowered.seconds * 1e3;
  report.sides = {side_report("stock", "before", stock, stock), side_report("float32", "", stock, timing[0]),
                  side_report("fallback", "", stock, timing[3]), side_report("optimized", "after", stock, lowered)};
  report.speedup = report.sides.back().speedup;
  return true;
}

/// Where nothing can be timed, what pays in float32 need not in another type: the cost model decides once more.
Model by_cost(const Trials& trials, Trial made, Report& report) {
  const Lowering& work = trials.work;
  const std::set<std::string>& disabled = work.precise.corrected.disabled;
  Report scratch;
  SelectTools tools;
  tools.lay_out = [&](Model fused) { return work.pipeline.lay_out(std::move(fused), disabled, scratch); };
  tools.emit = Pipeline::emit;
  tools.typical = work.pipeline.typical();
  report.regions.clear();
  return select_by_cost(made.fused, tools.lay_out(made.fused), tools, work.options.target, report).model;
}

}  // namespace

std::optional<Model> lower_precision(const Precise& precise, const Options& options, const Pipeline& pipeline,
                                     const Sessions& sessions, const std::filesystem::path& plugin,
                                     const std::vector<Feeds>& synthetic, Report& report) {
  const Lowering work{precise, options, pipeline, sessions, plugin};
  Trials trials(work, synthetic);
  Trial made = trials.scored(fully_lowered(trials, report));
  report.steps.insert(report.steps.end(), made.report.steps.begin(), made.report.steps.end());
  report.notes.insert(report.notes.end(), made.report.notes.begin(), made.report.notes.end());
  PrecisionReport precision_report(trials, report);
  const auto refuse = [&](const std::string& why) {
    precision_report.refuse(why);
    report.notes.push_back(why + ": the model stays in float32");
    return std::optional<Model>();
  };
  if (made.lowered.empty()) return refuse("no op of this model can run in lower precision here (--explain)");
  if (!trials.reference.has_numbers()) return refuse("no sample gives a finite number to judge it by");
  if (options.verify && !options.score && trials.samples.evaluation().empty())
    return refuse("the original runs on no made-up inputs, and nothing says what it would cost (give --inputs)");
  Chooser chooser(trials, precision_report);
  made = chooser.choose(std::move(made));
  if (made.lowered.empty()) return refuse("no part of it stays within --max-drop");
  if (const std::string why = forbidden_type(made.runnable, half_type(options)); !why.empty())
    return refuse("ONNX has no such type there, " + why);
  if (const std::string why = kernels_differ(trials, made); !why.empty()) return refuse(why);
  precision_report.describe(made, chooser.why());
  if (options.level == Level::O1) return inline_functions(std::move(made.runnable));
  if (options.target.device != Device::cpu) return by_cost(trials, std::move(made), report);
  if (trials.measurable() && !is_faster(trials, made, report))
    return refuse("in lower precision it is not faster here");
  return std::move(made.runnable);
}

}  // namespace modelflow
