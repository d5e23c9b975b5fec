// Model -> stages -> selection -> verification -> Model: read this first. Loading and saving are the caller's.
#include <ctime>

#include "modelflow/modelflow.h"
#include "passes/passes.h"
#include "src/compose/specialize.h"
#include "src/emit/emit.h"
#include "src/emit/foreign.h"
#include "src/fastest.h"
#include "src/measure/describe.h"
#include "src/measure/sides.h"
#include "src/onnx/contradiction.h"
#include "src/plugin.h"
#include "src/precision/lower_precision.h"
#include "src/request.h"
#include "src/typical.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

std::string_view name(Level level) { return level == Level::O0 ? "O0" : level == Level::O1 ? "O1" : "O2"; }

/// As "2026-01-31T12:00:00Z".
std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm utc = {};
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
  return text;
}

/// What a report says of every run.
void begin(Report& report, const Options& options) {
  report.version = version();
  report.target = options.target.str();
  report.level = name(options.level);
  report.created = now();
  report.machine = this_machine(options.threads);
}

/// What contradicts the rules of ONNX and does not load either; what is only unknown to this runtime may be fine.
void refuse_what_cannot_be_right(const Model& model, Runtime& runtime) {
  const std::string why = contradiction(model);
  if (why.empty()) return;
  std::string refusal;
  if (!loads(runtime, model, refusal)) throw Error(ErrorKind::invalid_input, why);
}

/// What the result is, and where its time goes.
void describe(const Model& original, const Selected& chosen, const Model& fused,
              const std::map<std::string, Dims>& typical, const Options& options, const Verifier& verifier,
              Report& report) {
  describe_at(original, chosen.original ? nullptr : &chosen.model, fused, typical, report);
  if (options.profile && !report.sides.empty()) {
    options.progress("profile", 0);
    const Feeds& feeds = verifier.reference().feeds.front().values;
    profile_sides(verifier.sessions(), {original, chosen.model}, feeds, options, plugin_for(options.target), report);
  }
  report.fused = fused_report(chosen.model, typical, options.target);
  if (runs_here(options.target) || !report.verified || report.fused.empty()) return;
  const bool device = options.target.device != Device::cpu;
  report.notes.push_back(std::string("verified on this machine's CPU, by ") +
                         (device ? "the bodies of the fused ops: no kernel for " : "kernels that it has: none for ") +
                         options.target.str() + " was run");
}

}  // namespace

Route route(const Options& options) {
  using namespace passes;
  if (options.level == Level::O0) return {};
  if (options.level == Level::O1 && options.precision == Precision::f32) return {.portable = {clean(options)}};
  Route route{.portable = {clean(options)},
              .fused = {normalize(options), clean(options), fuse(options)},  // normalize makes foldable constants
              .equalized = {equalize(options)},
              .quantized = {quantize(options)},
              .laid_out = {layout(options), clean(options), finish(options)}};  // fuse leaves dead ones
  // The portable form in lower precision is the same with the bodies written out, which have no use for a layout.
  if (options.level == Level::O1) route.laid_out = {clean(options)};
  return route;
}

Result optimize(Model arrived, const Options& asked) {
  Report report;
  Options given = asked;
  arrived = specialized(std::move(arrived), given, report.notes);
  if (given.level != Level::O0) drop_uncalled(arrived);  // else every session and form of the model would carry them
  const std::optional<Model> plain = without_foreign_functions(arrived);
  const Model& model = plain ? *plain : arrived;
  const Options options = accepted(std::move(given), model);
  begin(report, options);
  if (options.level == Level::O0) {
    report.before = report.after = stats(model);
    return {std::move(arrived), std::move(report)};
  }
  const std::shared_ptr<Runtime> runtime = Runtime::find(&report.runtime, options.custom_ops);
  if (runtime) report.runtime = "ONNX Runtime " + runtime->version();
  const auto step = [&](std::string_view what) { options.progress(what, 0); };

  step("run the original");
  const std::filesystem::path plugin = plugin_for(options.target);
  const Verifier verifier(runtime, model, options, plugin);
  report.feeds = verifier.reference().list;
  if (runtime && (options.verify || options.measure) && !verifier.reference().why_not.empty())
    refuse_what_cannot_be_right(model, *runtime);
  step("optimize");
  const std::map<std::string, Dims> typical = typical_extents(model, options, verifier.reference());
  const Pipeline pipeline = Pipeline(options, runtime, route(options))
                                .for_inputs(typical);  // absorb, clean, normalize, clean, fuse, layout, clean
  Corrected corrected = build_correct(model, options, pipeline, verifier, report);
  const Model fused = corrected.forms.whole();  // selection takes it apart
  step("select");
  Selected chosen = fastest(model, pipeline, corrected, verifier, runtime.get(), report);  // and emit
  step("verify");
  chosen = verified(std::move(chosen), model, corrected, verifier, report);
  if (!chosen.original) report.after = changed_stats(chosen.model);
  if (options.precision != Precision::f32) {
    step("lower the precision");
    if (!runtime)
      throw Error(ErrorKind::unsupported, "lower precision needs ONNX Runtime to run the model: " + report.runtime);
    std::optional<Model> lowered =
        lower_precision({model, corrected, chosen.model}, options, pipeline, verifier.sessions(), plugin,
                        verifier.reference().ordinary(), report);
    if (lowered) {
      chosen = {.model = std::move(*lowered)};
      report.after = stats(chosen.model);
    }
  }
  describe(model, chosen, fused, typical, options, verifier, report);
  return {std::move(chosen.model), std::move(report)};
}

std::vector<Stage> stages(const Options& options) {
  std::vector<Stage> copies;
  const Route all = route(options);
  for (const Stage* stage : all.stages()) copies.push_back(*stage);
  return copies;
}

std::string_view version() { return MODELFLOW_VERSION; }

}  // namespace modelflow
