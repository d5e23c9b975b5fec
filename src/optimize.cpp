// Model -> stages -> selection -> verification -> Model: read this first.
#include <algorithm>
#include <cmath>

#include "modelflow/modelflow.h"
#include "passes/passes.h"
#include "src/correct.h"
#include "src/emit/foreign.h"
#include "src/emit/fused_calls.h"
#include "src/flow/flow.h"
#include "src/input_shape.h"
#include "src/limit_guard.h"
#include "src/measure/bf16_price.h"
#include "src/measure/describe.h"
#include "src/measure/region_timing.h"
#include "src/measure/select.h"
#include "src/onnx/contradiction.h"
#include "src/pipeline.h"
#include "src/precision/lower_precision.h"
#include "src/precision/samples.h"
#include "src/verify/compare.h"
#include "src/verify/verifier.h"

namespace modelflow {
namespace {

void refuse_wrong_numbers(const Options& options) {
  const auto refuse = [](bool wrong, const char* what) {
    if (wrong) throw Error(ErrorKind::usage, what);
  };
  refuse(options.threads < 0, "the number of threads cannot be negative");
  refuse(options.tolerance && !(*options.tolerance > 0 && std::isfinite(*options.tolerance)),
         "the tolerance must be a positive number");
  refuse(!(options.max_seconds >= 0), "the time for measuring must be a number of seconds");
  refuse(!(options.limits.timeout >= 0 && options.limits.max_memory >= 0), "limits cannot be negative");
  refuse(!(options.max_drop >= 0 && options.max_drop <= 100), "max_drop must lie between 0 and 100 per cent");
}

void refuse_what_is_not_there(const Options& options) {
  const Device device = options.target.device;
  const bool runs = std::ranges::any_of(
      kernels(), [device](const Kernel* kernel) { return kernel->device == device && kernel->create; });
  if (!runs && options.level == Level::O2)
    throw Error(ErrorKind::unsupported,
                "no kernels for " + std::string(name(device)) + " yet: use a cpu target, or level O1");
  if (options.precision == Precision::bf16 && !options.target.has(Isa::avx512_bf16))
    throw Error(ErrorKind::unsupported, bf16_price(options));
  if (options.precision == Precision::i8 && !options.calibration)
    throw Error(ErrorKind::usage, "int8 needs samples to calibrate with (--calibration); int8-dynamic does without");
  if (options.precision != Precision::f32 && options.level == Level::O0)
    throw Error(ErrorKind::usage, "level O0 changes nothing, so it cannot lower the precision");
  Options all = options;
  all.level = Level::O2;  // a name of another level does nothing at this one
  check_names(options, stages(all));
}

std::string_view name(Level level) { return level == Level::O0 ? "O0" : level == Level::O1 ? "O1" : "O2"; }

/// What contradicts the rules of ONNX and does not load either; what is only unknown to this runtime may be fine.
void refuse_what_cannot_be_right(const Model& model, Runtime& runtime) {
  const std::string why = contradiction(model);
  if (why.empty()) return;
  try {
    open_session(runtime, model, {});
  } catch (const Error&) {
    throw Error(ErrorKind::invalid_input, why);
  }
}

/// At O1 what was cleaned up; else selection by the clock where this machine is the target and can run the model, else
/// by the cost model.
Selected choose(const Model& original, const Options& options, const Pipeline& pipeline, Corrected& corrected,
                const Verifier& verifier, Runtime* runtime, Report& report) {
  Report scratch;  // the passes run again and again here: only their first run is worth reporting
  if (options.level == Level::O1)
    return {Pipeline::emit(std::move(corrected.forms.portable)), options.precision == Precision::f32};
  const std::filesystem::path plugin = plugin_path();
  const Model& fused = corrected.forms.whole();
  SelectTools tools;
  tools.lay_out = [&](Model fused) { return pipeline.lay_out(std::move(fused), corrected.disabled, scratch); };
  tools.emit = Pipeline::emit;
  tools.budget = std::min(options.max_seconds, 20.0);
  const auto by_cost = [&] {
    return select_by_cost(fused, std::move(*corrected.laid_out), tools, options.target, report);
  };
  if (!runtime || !options.measure || !options.target.is_host() || plugin.empty() || verifier.reference().feeds.empty())
    return by_cost();
  const Feeds& feeds = verifier.reference().feeds.front().values;
  tools.time = [&](const std::vector<const Model*>& models, double budget) {
    return time_models(*runtime, models, feeds, options, plugin, {budget, is_sure});
  };
  tools.time_regions = [&](const Model& laid_out) {
    return time_regions(*runtime, original, laid_out, tools, feeds, options, plugin);
  };
  try {
    return select({original, corrected.forms.portable, fused}, tools, report);
  } catch (const Error&) {
    std::string why;
    if (verifier.original_loads(why)) throw;
    report.notes.push_back("not measured: ONNX Runtime's own optimizations do not load the original (" + why + ")");
    return by_cost();
  }
}

/// A form that was not verified yet is a part of one that was, in another layout: looked at before it leaves.
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
  }
  report.verification = std::move(outcome.diffs);
  report.verified = outcome.ok;
  return chosen;
}

/// Every step that is told to the caller is also where the limits are looked at.
void watch_limits(Options& options) {
  options.progress = [guard = LimitGuard(options.limits), tell = std::move(options.progress)](std::string_view step,
                                                                                              double done) {
    guard.check(step);
    if (tell) tell(step, done);
  };
}

/// What the user left to us: data to verify with, whether there is something to measure.
Options resolved(Options options, const Model& model) {
  watch_limits(options);
  if (options.calibration) options.calibration = checked_samples(model, std::move(options.calibration));
  if (options.inputs.empty() && options.calibration)
    if (std::optional<Feeds> first = options.calibration(0)) options.inputs.push_back(std::move(*first));
  if (options.level == Level::O1 && options.precision == Precision::f32) options.measure = false;  // nothing to choose
  return options;
}

}  // namespace

Result optimize(Model arrived, const Options& given) {
  const std::optional<Model> plain = without_foreign_functions(arrived);
  const Model& model = plain ? *plain : arrived;
  const Options options = resolved(given, model);
  refuse_wrong_numbers(options);
  refuse_what_is_not_there(options);
  check_input_shapes(model, options.input_shapes);
  check_fused_calls(model);
  Report report;
  report.version = version();
  report.target = options.target.str();
  report.level = name(options.level);
  if (options.level == Level::O0) {
    report.before = report.after = stats(model);
    return {std::move(arrived), std::move(report)};
  }

  std::string why;
  const std::shared_ptr<Runtime> runtime = Runtime::find(&why);
  report.runtime = runtime ? "ONNX Runtime " + runtime->version() : why;
  const auto step = [&](std::string_view what) { options.progress(what, 0); };

  step("run the original");
  const Verifier verifier(runtime, model, options, plugin_path());
  report.feeds = verifier.reference().list;
  if (runtime && (options.verify || options.measure) && !verifier.reference().why_not.empty())
    refuse_what_cannot_be_right(model, *runtime);
  step("optimize");
  const Pipeline pipeline(options, runtime);
  Corrected corrected = build_correct(model, options, pipeline, verifier, report);
  step("select");
  Selected chosen = choose(model, options, pipeline, corrected, verifier, runtime.get(), report);
  step("verify");
  chosen = verified(std::move(chosen), model, corrected, verifier, report);
  if (!chosen.original) report.after = changed_stats(chosen.model);
  if (options.precision != Precision::f32) {
    step("lower the precision");
    if (!runtime) throw Error(ErrorKind::unsupported, "lower precision needs ONNX Runtime to run the model: " + why);
    std::optional<Model> lowered = lower_precision({model, corrected, chosen.model}, options, pipeline, *runtime,
                                                   plugin_path(), verifier.reference().ordinary(), report);
    if (lowered) report.after = stats(chosen.model = std::move(*lowered));
  }
  report.fused = fused_report(chosen.model, options.target);
  return {std::move(chosen.model), std::move(report)};
}

std::vector<Stage> stages(const Options& options) { return passes::running_order(options); }

std::string_view version() { return MODELFLOW_VERSION; }

}  // namespace modelflow
