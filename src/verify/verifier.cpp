#include "src/verify/verifier.h"

#include <algorithm>

namespace modelflow {
namespace {

std::string describe(const std::vector<OutputDiff>& diffs) {
  for (const OutputDiff& diff : diffs)
    if (!diff.ok)
      return "output '" + diff.output + "' " +
             (diff.equal_type ? "differs by " + std::to_string(diff.max_rel) + " of its largest value"
                              : std::string("has another type or shape"));
  return "";
}

}  // namespace

Verifier::Verifier(std::shared_ptr<Runtime> runtime, const Model& original, const Options& options,
                   std::filesystem::path plugin)
    : runtime_(std::move(runtime)), original_(original), options_(options), plugin_(std::move(plugin)) {
  if (!runtime_)
    reference_.why_not = "there is no ONNX Runtime";
  else if (!options.verify && !options.measure)
    reference_.why_not = "neither verification nor measuring is wanted";
  else
    reference_ = make_reference(*runtime_, original, options);
}

Outcome Verifier::check(const Model& runnable) const {
  Outcome outcome;
  for (const bool with : {false, true}) {
    if (with && plugin_.empty()) break;
    std::string why;
    outcome.diffs = compare(*runtime_, reference_, original_, runnable, options_, with ? plugin_ : "", &why);
    outcome.ok = all_ok(outcome.diffs);
    if (outcome.ok) continue;
    outcome.kernels_only = with;
    outcome.why = std::string(with ? "with the plugin: " : "without the plugin: ") +
                  (why.empty() ? describe(outcome.diffs) : why);
    break;
  }
  return outcome;
}

bool Verifier::loads(const Model& runnable, std::string& why) const {
  if (!runtime_ || !options_.verify) return true;
  try {
    open_session(*runtime_, original_, {});
  } catch (const Error&) {
    return true;  // nothing to lose
  }
  try {
    open_session(*runtime_, runnable, {});
    return true;
  } catch (const Error& error) {
    why = error.what();
    return false;
  }
}

}  // namespace modelflow
