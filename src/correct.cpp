#include "src/correct.h"

#include "src/measure/extract.h"
#include "src/verify/bisect.h"

namespace modelflow {
namespace {

/// More than this many wrong passes and nodes means that the machine or the runtime is at fault.
constexpr int kMostCulprits = 8;

/// Looks at one model after the other; a pass that throws is as wrong as one that miscalculates.
class Search {
 public:
  Search(const Model& original, const Pipeline& pipeline, const Verifier& verifier)
      : original_(original), pipeline_(pipeline), verifier_(verifier) {}

  Outcome outcome(const Pipeline::Forms& forms, const std::set<std::string>& disabled, Report& report) const {
    const Model runnable = Pipeline::emit(pipeline_.lay_out(forms.fused, disabled, report));
    return verifier_.possible() ? verifier_.check(runnable) : Outcome();
  }

  /// Whether the model comes out wrong, or not at all, even when no pass runs.
  bool fails_without_passes(const std::set<std::string>& disabled) const {
    std::set<std::string> off = disabled;
    for (const std::string& name : pipeline_.pass_names(disabled)) off.insert(name);
    return fails(off);
  }

  std::string culprit_pass(const std::set<std::string>& disabled) const {
    const std::vector<std::string> names = pipeline_.pass_names(disabled);
    if (names.empty()) return "";
    return names[first_culprit(names.size(), [&](std::size_t enabled) {
      std::set<std::string> off = disabled;
      off.insert(names.begin() + static_cast<std::ptrdiff_t>(enabled), names.end());
      return fails(off);
    })];
  }

  std::string culprit_node(const Pipeline::Forms& forms, const std::set<std::string>& disabled) const {
    Model copy = forms.fused;
    std::vector<std::string> names;
    for (const Node* node : fused_nodes(copy.graph())) names.push_back(node->name);
    if (names.empty()) return "";
    return names[first_culprit(names.size(), [&](std::size_t fused) {
      Report scratch;
      Pipeline::Forms fewer = forms;
      revert(fewer.fused, {names.begin() + static_cast<std::ptrdiff_t>(fused), names.end()});
      return !outcome(fewer, disabled, scratch).ok;
    })];
  }

 private:
  bool fails(const std::set<std::string>& disabled) const {
    Report scratch;
    try {
      return !outcome(pipeline_.fuse(original_, disabled, scratch), disabled, scratch).ok;
    } catch (const Error&) {
      return true;
    }
  }

  const Model& original_;
  const Pipeline& pipeline_;
  const Verifier& verifier_;
};

void keep_reproducer(const Options& options, const Model& original, const Pipeline& pipeline, const Corrected& wrong,
                     Report& report) {
  if (options.reproducer.empty()) return;
  std::filesystem::create_directories(options.reproducer);
  original.save(options.reproducer / "original.onnx");
  Report scratch;
  Pipeline::emit(pipeline.lay_out(wrong.forms.fused, wrong.disabled, scratch)).save(options.reproducer / "wrong.onnx");
  report.notes.push_back("reproducer: original.onnx and wrong.onnx in " + options.reproducer.string());
}

}  // namespace

Corrected build_correct(const Model& original, const Options& options, const Pipeline& pipeline,
                        const Verifier& verifier, Report& report) {
  const Search search(original, pipeline, verifier);
  Corrected corrected;
  std::string why;
  bool rebuild = true;
  std::size_t steps = 0;
  for (int round = 0; round <= kMostCulprits; ++round) {
    Outcome outcome;
    try {
      if (rebuild) {
        report.steps.clear();
        corrected.forms = pipeline.fuse(original, corrected.disabled, report);
        steps = report.steps.size();
      }
      report.steps.resize(steps);  // of the rounds before, only what led to these forms
      outcome = search.outcome(corrected.forms, corrected.disabled, report);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::limit || search.fails_without_passes(corrected.disabled)) throw;
      outcome = {.ok = false, .kernels_only = false, .diffs = {}, .why = error.what()};
    }
    if (outcome.ok) {
      corrected.outcome = std::move(outcome);
      return corrected;
    }
    why = outcome.why;
    if (round == 0) keep_reproducer(options, original, pipeline, corrected, report);
    rebuild = !outcome.kernels_only;
    const std::string culprit = outcome.kernels_only ? search.culprit_node(corrected.forms, corrected.disabled)
                                                     : search.culprit_pass(corrected.disabled);
    if (culprit.empty()) break;
    report.notes.push_back((outcome.kernels_only ? "the kernel of node '" : "pass '") + culprit +
                           "' gives wrong results here and is left out (" + why + ")");
    if (outcome.kernels_only)
      revert(corrected.forms.fused, {culprit});
    else
      corrected.disabled.insert(culprit);
  }
  throw Error(ErrorKind::verification, why);
}

}  // namespace modelflow
