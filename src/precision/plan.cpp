// The steps from samples to everything lowered, each kept where the whole loses less.
#include "src/precision/plan.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "passes/equalize/equalize.h"
#include "passes/passes.h"
#include "passes/quantize/quantize.h"
#include "src/precision/bias_shifts.h"
#include "src/precision/calibrate.h"
#include "src/precision/channel_sizes.h"
#include "src/precision/roundings.h"

namespace modelflow {
namespace {

/// Samples that say whether other weights compute the same.
constexpr std::size_t kAFew = 4;
/// What other weights that compute the same may differ by, relative to the output.
constexpr double kSame = 1e-3;

/// "0.76 %"
std::string text(double percent) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.2f %%", percent);
  return digits.data();
}

class Planner {
 public:
  Planner(Trials& trials, Report& report)
      : trials_(trials), work_(trials.work), options_(trials.work.options), report_(report) {}

  /// Other weights that compute the same and lose less, where there are samples to choose them by.
  void equalize() {
    if (!options_.calibration) return;
    Model& base = trials_.base;
    QuantizationPlan& plan = trials_.plan;
    plan.channels = channel_sizes(work_.sessions, Pipeline::emit(base), passes::channels_to_observe(base.graph()),
                                  trials_.samples.calibration(), {.threads = options_.threads});
    if (plan.channels.empty()) return;
    Model equal = work_.pipeline.equalize(base, plan, work_.precise.corrected.disabled, report_);
    for (const OutputError& error : trials_.reference.errors_of(Pipeline::emit(equal), "", kAFew))
      if (error.relative_l2 > kSame) {
        report_.notes.push_back("equalized weights compute something else ('" + error.output + "'): not used");
        return;
      }
    base = std::move(equal);
  }

  std::vector<ObservedRanges> calibrated() {
    if (!passes::needs_ranges(options_)) return {{}};
    Options seen = options_;
    seen.calibration = trials_.samples.calibration();
    const Model runnable = Pipeline::emit(trials_.base);
    if (!trials_.samples.held_out())
      report_.notes.push_back("fewer than four samples: the same ones calibrate and judge, the error is understated");
    return calibrate(work_.sessions, runnable, passes::values_to_observe(runnable.graph()), seen, "", report_);
  }

  /// What loses the least with everything in low precision.
  Trial with_best_ranges(const std::vector<ObservedRanges>& candidates) {
    QuantizationPlan& plan = trials_.plan;
    std::optional<Trial> best;
    QuantizationPlan best_plan;
    std::string tried;
    for (const ObservedRanges& candidate : candidates) {
      plan.ranges = candidate.ranges;
      plan.bias_shifts.clear();
      plan.roundings.clear();
      Trial made = repaired(trials_.make({}));
      tried += (best ? ", by " : "ranges by ") + std::string(name(candidate.observer)) + ": drop of " + text(made.drop);
      if (best && best->drop <= made.drop) continue;
      best = std::move(made);
      best_plan = plan;
    }
    plan = std::move(best_plan);
    if (candidates.size() > 1 && !best->lowered.empty()) report_.notes.push_back(tried);
    return *std::move(best);
  }

 private:
  /// Biases last: what other roundings of the weights leave of the error is theirs to take.
  Trial repaired(Trial plain) {
    Trial rounded =
        repaired(std::move(plain), "compensate-rounding", &QuantizationPlan::roundings, modelflow::roundings);
    return repaired(std::move(rounded), "correct-bias", &QuantizationPlan::bias_shifts, modelflow::bias_shifts);
  }

  /// With what a repair knows of the model as it is rounded so far, where the whole loses no more with it.
  template <class Known, class Find>
  Trial repaired(Trial plain, const std::string& pass, Known QuantizationPlan::*part, Find find) {
    const std::vector<Pass> passes = passes::quantize(options_).passes;
    const bool on = std::ranges::any_of(passes, [&](const Pass& p) { return p.name == pass; });
    if (!options_.calibration || !on || options_.disabled.contains(pass) || plain.lowered.empty()) return plain;
    Known& known = trials_.plan.*part;
    known = find(work_.sessions, trials_.base, Pipeline::emit(trials_.base), plain.fused, trials_.samples.calibration(),
                 SessionOptions{.threads = options_.threads});
    if (known.empty()) return plain;
    Trial better = trials_.make({});
    if (better.drop <= plain.drop) return better;
    known.clear();
    plain.report.notes.push_back(pass + " does not help (drop of " + text(better.drop) + ", without it " +
                                 text(plain.drop) + "): not used");
    return plain;
  }

  Trials& trials_;
  const Lowering& work_;
  const Options& options_;
  Report& report_;
};

}  // namespace

Trial fully_lowered(Trials& trials, Report& report) {
  Planner planner(trials, report);
  planner.equalize();
  return planner.with_best_ranges(planner.calibrated());
}

}  // namespace modelflow
