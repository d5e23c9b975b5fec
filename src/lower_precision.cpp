#include "src/lower_precision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "modelflow/pass.h"
#include "passes/equalize/equalize.h"
#include "passes/quantize/quantize.h"
#include "src/calibrate/bias_shifts.h"
#include "src/calibrate/calibrate.h"
#include "src/calibrate/channels.h"
#include "src/calibrate/fewest_kept.h"
#include "src/calibrate/judge.h"
#include "src/calibrate/metric.h"
#include "src/calibrate/op_errors.h"
#include "src/calibrate/parted_samples.h"
#include "src/calibrate/roundings.h"
#include "src/measure/extract.h"
#include "src/measure/timing.h"

namespace modelflow {
namespace {

using Names = std::set<std::string>;

/// A faster form has to be so clearly, else its error buys nothing.
constexpr double kWorthwhile = 1.03;
constexpr double kGlance = 1.0;  // seconds for timing a point that may not be the one
/// Samples that rank ops against each other; whether the bound is kept, all of them say.
constexpr std::size_t kRankedBy = 4;
/// Ops that are tried in low precision once more after the bound held without them.
constexpr std::size_t kSecondTries = 12;
/// What other weights that compute the same may differ by, relative to the output.
constexpr double kSame = 1e-3;

/// One choice of ops to keep in float, and what comes of it.
struct Attempt {
  Model fused;     ///< before layout
  Model runnable;  ///< what runtimes load
  Names quantized;
  std::vector<OutputError> errors;
  double drop = 0;
  Report report;  ///< what the passes did
};

class Lowering {
 public:
  Lowering(const Precise& precise, const Options& options, const Pipeline& pipeline, Runtime& runtime,
           const std::filesystem::path& plugin, const std::vector<Feeds>& synthetic, Report& report)
      : precise_(precise),
        options_(options),
        pipeline_(pipeline),
        runtime_(runtime),
        plugin_(plugin),
        report_(report),
        samples_(options, synthetic),
        judge_(runtime, precise.original, samples_.judges(), options.threads),
        base_(precise.corrected.forms.fused) {}

  std::optional<Model> run() {
    equalize();
    const std::vector<ObservedRanges> ranges = calibrated();
    if (options_.score) full_score_ = options_.score(precise_.original);
    Attempt best = with_best_ranges(ranges);
    report_.steps.insert(report_.steps.end(), best.report.steps.begin(), best.report.steps.end());
    report_.notes.insert(report_.notes.end(), best.report.notes.begin(), best.report.notes.end());
    if (best.quantized.empty()) return refuse("no op of this model can run in lower precision here (--explain)");
    best = scored(std::move(best));
    list(best);
    note(best);
    if (best.drop > options_.max_drop) best = within_bound(best);
    if (best.quantized.empty()) return refuse("no part of it stays within --max-drop");
    if (const std::string why = kernels_differ(best); !why.empty()) throw Error(ErrorKind::verification, why);
    describe(best);
    if (options_.level == Level::O1) return inline_functions(std::move(best.runnable));
    if (measurable() && !is_faster(best)) return refuse("in lower precision it is not faster here");
    return std::move(best.runnable);
  }

 private:
  /// The report says of every op that was tried what runs instead.
  std::optional<Model> refuse(const std::string& why) {
    if (report_.quantization) {
      for (QuantizedReport& row : report_.quantization->ops)
        if (row.reason.empty()) keep_float(row, why);
      report_.quantization->drop = 0;
      report_.quantization->outputs.clear();
    }
    report_.notes.push_back(why + ": the model stays in float32");
    return {};
  }

  /// Other weights that compute the same and lose less, where there are samples to choose them by.
  void equalize() {
    if (!options_.calibration) return;
    plan_.channels = channel_sizes(runtime_, Pipeline::emit(base_), passes::channels_to_observe(base_.graph()),
                                   samples_.seen(), {.threads = options_.threads});
    if (plan_.channels.empty()) return;
    Model equal = pipeline_.equalize(base_, plan_, precise_.corrected.disabled, report_);
    for (const OutputError& error : judge_.errors(Pipeline::emit(equal), "", kRankedBy))
      if (error.relative_l2 > kSame) {
        report_.notes.push_back("equalized weights compute something else ('" + error.output + "'): not used");
        return;
      }
    base_ = std::move(equal);
  }

  /// With what a repair knows of the model as it is rounded so far, where the whole loses no more with it.
  template <class Known, class Find>
  Attempt repaired(Attempt plain, const std::string& pass, Known QuantizationPlan::*part, Find find) {
    const std::vector<Pass> passes = passes::quantizing(options_);
    const bool on = std::ranges::any_of(passes, [&](const Pass& p) { return p.name == pass; });
    if (!options_.calibration || !on || options_.disabled.contains(pass) || plain.quantized.empty()) return plain;
    plan_.*part = find(runtime_, base_, Pipeline::emit(base_), plain.fused, samples_.seen(),
                       SessionOptions{.threads = options_.threads});
    if ((plan_.*part).empty()) return plain;
    Attempt better = attempt({});
    if (better.drop <= plain.drop) return better;
    (plan_.*part).clear();
    plain.report.notes.push_back(pass + " does not help (drop of " + text(better.drop) + ", without it " +
                                 text(plain.drop) + "): not used");
    return plain;
  }

  /// Biases last: what other roundings of the weights leave of the error is theirs to take.
  Attempt repaired(Attempt plain) {
    Attempt rounded =
        repaired(std::move(plain), "compensate-rounding", &QuantizationPlan::roundings, modelflow::roundings);
    return repaired(std::move(rounded), "correct-bias", &QuantizationPlan::bias_shifts, modelflow::bias_shifts);
  }

  std::vector<ObservedRanges> calibrated() {
    if (options_.precision != Precision::i8) return {{}};
    Options seen = options_;
    seen.calibration = samples_.seen();
    const Model runnable = Pipeline::emit(base_);
    if (!samples_.held_back())
      report_.notes.push_back("fewer than four samples: the same ones calibrate and judge, the error is understated");
    return calibrate(runtime_, runnable, passes::values_to_observe(runnable.graph()), seen, "", report_);
  }

  /// What loses the least with everything in low precision.
  Attempt with_best_ranges(const std::vector<ObservedRanges>& candidates) {
    std::optional<Attempt> best;
    QuantizationPlan best_plan;
    std::string tried;
    for (const ObservedRanges& candidate : candidates) {
      plan_.ranges = candidate.ranges;
      plan_.bias_shifts.clear();
      plan_.roundings.clear();
      Attempt made = repaired(attempt({}));
      tried += (best ? ", by " : "ranges by ") + std::string(name(candidate.observer)) + ": drop of " + text(made.drop);
      if (best && best->drop <= made.drop) continue;
      best = std::move(made);
      best_plan = plan_;
    }
    plan_ = std::move(best_plan);
    if (candidates.size() > 1 && !best->quantized.empty()) report_.notes.push_back(tried);
    return *std::move(best);
  }

  /// "0.76 %"
  static std::string text(double percent) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.2f %%", percent);
    return digits.data();
  }

  Attempt attempt(Names keep, std::size_t most_judges = SIZE_MAX) {
    plan_.keep_float = std::move(keep);
    Attempt made;
    made.fused = pipeline_.quantize(base_, plan_, precise_.corrected.disabled, made.report);
    for (const Node* node : fused_nodes(made.fused.graph()))
      if (is_quantized(*node)) made.quantized.insert(node->name);
    if (made.quantized.empty()) return made;
    // The portable form has no use for another layout: its convolutions are standard ones.
    made.runnable = Pipeline::emit(options_.level == Level::O1 ? made.fused : lay_out(made.fused));
    made.errors = judge_.errors(made.runnable, plugin_, most_judges);
    made.drop = drop(made.errors, options_.metric);
    return made;
  }

  /// Judged by the user's own figure, where there is one.
  Attempt scored(Attempt made) {
    if (!options_.score || made.quantized.empty()) return made;
    const double score = options_.score(made.runnable);
    made.drop = full_score_ == 0 ? (score < 0 ? 100 : 0) : 100 * (full_score_ - score) / std::abs(full_score_);
    return made;
  }

  Model lay_out(const Model& fused) const {
    Report scratch;
    return pipeline_.lay_out(fused, precise_.corrected.disabled, scratch);
  }

  static bool is_quantized(const Node& node) {
    const FusedOp* op = find_fused_op(node.op());
    if (!op || op->input_types.size() == 1) return op && op->output_type != DType::f32;
    return std::ranges::any_of(op->input_types, [](DType t) { return t != DType::f32 && t != DType::undefined; });
  }

  /// The quantized ops, the one that costs the most accuracy first. What each saves by its own measured time was tried
  /// in the denominator, and left fewer ops and less speed: an op that goes takes its neighbours' 8-bit borders with
  /// it.
  std::vector<std::string> by_sensitivity(const Names& all) {
    std::vector<std::pair<double, std::string>> ranked;
    for (const std::string& name : all) {
      Names others = all;
      others.erase(name);
      if (options_.progress)
        options_.progress("rank by accuracy", static_cast<double>(ranked.size()) / static_cast<double>(all.size()));
      ranked.emplace_back(attempt(std::move(others), kRankedBy).drop, name);
    }
    std::sort(ranked.rbegin(), ranked.rend());
    std::vector<std::string> names;
    names.reserve(ranked.size());
    for (const auto& [drop, name] : ranked) names.push_back(name);
    return names;
  }

  /// As few ops in float as a search finds that the bound takes.
  Attempt within_bound(const Attempt& all) {
    Attempt best;
    const auto holds = [&](const Names& keep) {
      Attempt made = scored(attempt(keep));
      note(made);
      const bool within = !made.quantized.empty() && made.drop <= options_.max_drop;
      if (within && made.quantized.size() >= best.quantized.size()) best = std::move(made);
      return within;
    };
    plan_.keep_float = fewest_kept(by_sensitivity(all.quantized), holds, kSecondTries);
    return best;
  }

  bool measurable() const { return options_.measure && options_.target.is_host() && !plugin_.empty(); }

  /// A point of the frontier between speed and accuracy.
  void note(const Attempt& made) {
    FrontierPoint point{made.quantized.size(), made.drop, 0};
    if (measurable() && options_.level == Level::O2) {
      const std::vector<const Model*> models = {&precise_.fastest, &made.runnable};
      point.speedup =
          time_models(runtime_, models, samples_.judges().front(), options_, plugin_, kGlance).at(1).speedup;
    }
    std::vector<FrontierPoint>& frontier = report_.quantization->frontier;
    frontier.push_back(point);
    std::sort(frontier.begin(), frontier.end(), [](const auto& a, const auto& b) { return a.quantized > b.quantized; });
  }

  /// Two correct runs of a quantized model drift apart (one float more or less decides a rounding, and the next layer
  /// sees a step), but neither is further from the original than the other.
  std::string kernels_differ(const Attempt& made) const {
    if (plugin_.empty()) return "";
    const std::vector<OutputError> bodies = judge_.errors(made.runnable, "");
    for (std::size_t i = 0; i < bodies.size(); ++i)
      if (made.errors[i].relative_l2 > 1e-3 + 1.5 * bodies[i].relative_l2)
        return "output '" + bodies[i].output + "' of the quantized model is off by " +
               std::to_string(made.errors[i].relative_l2) + " with our kernels and by " +
               std::to_string(bodies[i].relative_l2) + " without them";
    return "";
  }

  bool is_faster(const Attempt& made) {
    const std::vector<const Model*> models = {&precise_.fastest, &precise_.original, &made.runnable};
    const std::vector<Timing> timing = time_models(runtime_, models, samples_.judges().front(), options_, plugin_,
                                                   std::min(options_.max_seconds, 10.0));
    if (timing[2].speedup < kWorthwhile) return false;
    report_.stock_ms = timing[1].seconds * 1e3;
    report_.optimized_ms = timing[2].seconds * 1e3;
    report_.speedup = timing[2].speedup / timing[1].speedup;
    return true;
  }

  void keep_float(QuantizedReport& row, const std::string& why) const {
    row = {.node = row.node, .op = float_ops_.at(row.node), .precision = "float32", .sqnr = {}, .reason = why};
  }

  /// The ops that can run in lower precision; what stands at the borders of 8 bits is none.
  void list(const Attempt& all) {
    if (!report_.quantization) report_.quantization.emplace();
    QuantizationReport& q = *report_.quantization;
    q.precision = name(options_.precision);
    q.metric = options_.score ? "score" : name(options_.metric);
    q.max_drop = options_.max_drop;
    for (const auto& node : base_.graph().nodes()) float_ops_[node->name] = node->op();
    for (const auto& node : all.fused.graph().nodes())
      if (all.quantized.contains(node->name) && float_ops_.contains(node->name))
        q.ops.push_back({.node = node->name, .op = node->op(), .precision = q.precision, .sqnr = {}, .reason = ""});
  }

  void describe(const Attempt& made) {
    QuantizationReport& q = *report_.quantization;
    q.drop = made.drop;
    q.outputs = made.errors;
    const std::map<std::string, double> errors = errors_of_ops(made);
    for (QuantizedReport& row : q.ops) {
      if (!made.quantized.contains(row.node)) keep_float(row, "it costs too much accuracy");
      if (const auto found = errors.find(row.node); found != errors.end()) row.sqnr = found->second;
    }
  }

  /// Nothing is known of them where nobody wants the model run.
  std::map<std::string, double> errors_of_ops(const Attempt& made) const {
    if (samples_.judges().empty()) return {};
    return op_errors(runtime_, {base_, Pipeline::emit(base_)}, {made.fused, Pipeline::emit(made.fused)},
                     samples_.judges().front(), {.threads = options_.threads});
  }

  const Precise& precise_;
  const Options& options_;
  const Pipeline& pipeline_;
  Runtime& runtime_;
  const std::filesystem::path& plugin_;
  Report& report_;
  PartedSamples samples_;
  Judge judge_;
  Model base_;  ///< float32, what is quantized
  QuantizationPlan plan_;
  std::map<std::string, std::string> float_ops_;  // by node, as they were before
  double full_score_ = 0;
};

}  // namespace

std::optional<Model> lower_precision(const Precise& precise, const Options& options, const Pipeline& pipeline,
                                     Runtime& runtime, const std::filesystem::path& plugin,
                                     const std::vector<Feeds>& synthetic, Report& report) {
  return Lowering(precise, options, pipeline, runtime, plugin, synthetic, report).run();
}

}  // namespace modelflow
