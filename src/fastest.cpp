// The fastest of the right forms of a model, verified once more.
#include "src/fastest.h"

#include <algorithm>

#include "src/measure/region_timing.h"
#include "src/plugin.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

/// Empty where nothing is in the way.
std::string why_not_measured(const Runtime* runtime, const Options& options, const std::filesystem::path& plugin,
                             const Verifier& verifier) {
  if (!runtime) return "there is no ONNX Runtime";
  if (!options.target.is_host()) return "the target is not this machine";
  if (plugin.empty()) return "the plugin is not where it is looked for";
  if (verifier.reference().feeds.empty()) return "the original was not run";
  return {};
}

}  // namespace

Selected fastest(const Model& original, const Pipeline& pipeline, Corrected& corrected, const Verifier& verifier,
                 Runtime* runtime, Report& report) {
  const Options& options = pipeline.options();
  Report scratch;  // the passes run again and again here: only their first run is worth reporting
  if (options.level == Level::O1)
    return {Pipeline::emit(std::move(corrected.forms.portable)), options.precision == Precision::f32};
  const std::filesystem::path plugin = plugin_for(options.target);
  const Model& fused = corrected.forms.whole();
  SelectTools tools;
  tools.lay_out = [&](Model fused) { return pipeline.lay_out(std::move(fused), corrected.disabled, scratch); };
  tools.emit = Pipeline::emit;
  tools.typical = pipeline.typical();
  tools.budget = std::min(options.max_seconds, 5.0);
  tools.max_seconds = options.max_seconds;
  const auto by_cost = [&] {
    return select_by_cost(fused, std::move(*corrected.laid_out), tools, options.target, report);
  };
  if (!options.measure) return by_cost();
  if (const std::string why = why_not_measured(runtime, options, plugin, verifier); !why.empty()) {
    report.notes.push_back("not measured, costs decide: " + why);
    return by_cost();
  }
  const Feeds& feeds = verifier.reference().feeds.front().values;
  tools.time = [&](const std::vector<const Model*>& models, double budget) {
    if (options.progress) options.progress("select", 0);
    return time_models(verifier.sessions(), models, feeds, options, plugin, {budget, is_decided});
  };
  tools.time_regions = [&](const Model& laid_out) {
    return time_regions(verifier.sessions(), original, laid_out, tools, feeds, options, plugin);
  };
  try {
    return select({original, corrected.forms.portable, fused}, tools, report);
  } catch (const Error&) {
    std::string why;
    if (verifier.original_loads(why)) throw;
    report.regions.clear();
    report.notes.push_back("not measured: ONNX Runtime's own optimizations do not load the original (" + why + ")");
    return by_cost();
  }
}

Selected verified(Selected chosen, const Model& original, const Corrected& corrected, const Verifier& verifier,
                  Report& report) {
  if (!verifier.possible()) {
    if (!verifier.reference().why_not.empty()) report.notes.push_back("not verified: " + verifier.reference().why_not);
    std::string why;
    if (verifier.still_loads(chosen.model, why)) return chosen;
    report.notes.push_back("the result does not load (" + why + "): the model stays as it came");
    return {.model = original, .original = true};
  }
  Outcome outcome = chosen.whole ? corrected.outcome : verifier.check(chosen.model);
  if (!outcome.ok) {
    report.notes.push_back("the selected form is wrong (" + outcome.why + "): the model stays as it came");
    outcome = verifier.check(original);
    chosen = {.model = original, .original = true};
    report.speedup = 1;
    report.stock_ms = report.optimized_ms = 0;
    for (RegionReport& region : report.regions) region.kept = false;
    report.sides.resize(std::min<std::size_t>(report.sides.size(), 1));  // stock
  }
  for (std::size_t k = 0; k < outcome.diffs.size(); ++k) {
    const std::string why_not = verifier.reference().not_compared(k);
    if (why_not.empty())
      report.verification.push_back(std::move(outcome.diffs[k]));
    else
      report.notes.push_back("output '" + outcome.diffs[k].output + "' is not compared: " + why_not);
  }
  report.verified = outcome.ok && !report.verification.empty();
  return chosen;
}

}  // namespace modelflow
