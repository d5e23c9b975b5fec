// A result that is right: wrong rules and kernels are found and left out, until verification has no more to say.
#include "src/correct.h"

#include "src/reproduce.h"
#include "src/search.h"

namespace modelflow {
namespace {

/// More than this many wrong rules and kernels means that the machine or the runtime is at fault.
constexpr int kMostCulprits = 8;

/// A pass that throws shows on no feed.
std::string in_words(const Fault& fault, const std::string& why) {
  std::string text = !fault.kernel.empty() ? "kernel '" + fault.kernel + "'"
                     : !fault.rule.empty() ? "rule '" + fault.rule + "' of pass '" + fault.pass + "'"
                                           : "pass '" + fault.pass + "'";
  text += fault.feed.empty() ? " fails here" : " gives wrong results here";
  if (!fault.node.empty()) text += ", first at " + fault.node;
  return text + ", and is left out (" + why + ")";
}

void leave_out(const Fault& fault, Without& without) {
  if (!fault.kernel.empty())
    without.kernels.insert(fault.kernel);
  else
    without.names.insert(fault.rule.empty() ? fault.pass : fault.rule);
}

bool is_known(const Fault& fault, const Without& without) {
  const std::string& name = fault.rule.empty() ? fault.pass : fault.rule;
  return fault.kernel.empty() ? name.empty() || without.names.contains(name) : without.kernels.contains(fault.kernel);
}

/// One round: the forms and what they came to; an Error that no pass is to blame for goes on.
Outcome attempt(const Search& search, const Without& without, Corrected& corrected, Report& report) {
  try {
    report.steps.clear();
    corrected.laid_out.reset();
    corrected.forms = search.forms(without, report);
    if (corrected.forms.fused) corrected.laid_out = search.laid_out(corrected.forms, without, report);
    return search.outcome(corrected.laid_out ? *corrected.laid_out : corrected.forms.portable);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::limit || search.fails_without_passes(without)) throw;
    return {.ok = false, .why = error.what()};
  }
}

}  // namespace

Corrected build_correct(const Model& original, const Options& options, const Pipeline& pipeline,
                        const Verifier& verifier, Report& report) {
  const Search search(original, pipeline, verifier);
  Corrected corrected;
  Without without;
  for (int round = 0;; ++round) {
    Outcome outcome = attempt(search, without, corrected, report);
    if (outcome.ok) {
      if (!outcome.note.empty()) report.notes.push_back(outcome.note);
      corrected.disabled = without.names;
      corrected.kernels = without.kernels;
      corrected.outcome = std::move(outcome);
      return corrected;
    }
    if (options.progress) options.progress("search for what is wrong", 0);
    Fault fault = outcome.kernels_only ? search.culprit_kernel(corrected.forms, without, outcome) : Fault();
    if (fault.node.empty()) fault = search.culprit(without, outcome);
    fault.feed = outcome.feed;
    fault.difference = outcome.fault;
    if (round == kMostCulprits || is_known(fault, without) || search.fails_without_passes(without))
      throw Error(ErrorKind::verification, outcome.why);
    fault.what = in_words(fault, outcome.why);
    if (!options.reproducer.empty())
      keep_reproducer({original, options, pipeline, verifier}, without, outcome, fault, report);
    report.notes.push_back(fault.what);
    leave_out(fault, without);
    report.faults.push_back(std::move(fault));
  }
}

}  // namespace modelflow
