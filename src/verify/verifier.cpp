#include "src/verify/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace modelflow {
namespace {

std::string describe(const OutputDiff& diff) {
  if (!diff.equal_type) return "has another type or shape";
  if (diff.max_abs == 0) return "differs";  // texts
  if (!std::isfinite(diff.max_abs)) return "has NaN or infinity where the original has none, or the other way round";
  if (!std::isfinite(diff.max_rel)) return fmt::format("is {:.1e} where the original is 0", diff.max_abs);
  return fmt::format("differs by {:.1e} of its largest value", diff.max_rel);
}

std::string describe(const std::vector<OutputDiff>& diffs) {
  for (const OutputDiff& diff : diffs)
    if (!diff.ok) return "output '" + diff.output + "' " + describe(diff);
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
