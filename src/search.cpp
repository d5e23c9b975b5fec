// The forms of a model without the rules and kernels that were found wrong.
#include "src/search.h"

#include <climits>

#include "src/measure/extract.h"
#include "src/verify/bisect.h"

namespace modelflow {
namespace {

std::string kernel_of(const Node& fused, const Target& target) {
  const Choice choice = choose_kernel(call_of(fused), target);
  return choice.kernel ? std::string(choice.kernel->name) : "";
}

}  // namespace

/// With a node less the layout may change, and with it the kernels of others.
void Search::revert_kernels(Model& fused, const Without& without) const {
  std::set<std::string> reverted;
  for (bool again = true; again;) {
    Report scratch;
    Model laid_out = pipeline_.lay_out(fused, without.names, scratch);
    std::vector<std::string> names;
    for (const Node* node : fused_nodes(laid_out.graph()))
      if (without.kernels.contains(kernel_of(*node, pipeline_.options().target)) && reverted.insert(node->name).second)
        names.push_back(node->name);
    again = !names.empty();
    if (again) revert(fused, names);
  }
}

Pipeline::Forms Search::forms(const Without& without, Report& report) const {
  Pipeline::Forms forms = pipeline_.fuse(original_, without.names, report);
  if (!without.kernels.empty() && forms.fused) revert_kernels(*forms.fused, without);
  return forms;
}

Model Search::laid_out(const Pipeline::Forms& forms, const Without& without, Report& report) const {
  return pipeline_.lay_out(forms.whole(), without.names, report);
}

Model Search::runnable(const Pipeline::Forms& forms, const Without& without, Report& report) const {
  return Pipeline::emit(laid_out(forms, without, report));
}

Outcome Search::outcome(const Model& laid_out) const {
  return verifier_.possible() ? verifier_.check(Pipeline::emit(laid_out)) : Outcome();
}

bool Search::fails(const Pipeline& pipeline, const Without& without, const Outcome& found) const {
  Report scratch;
  const Search search(original_, pipeline, verifier_);
  try {
    const Model model = search.runnable(search.forms(without, scratch), without, scratch);
    return verifier_.possible() && verifier_.shares_fault(model, found);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::limit) throw;  // says nothing of the passes
    return true;
  }
}

bool Search::fails_without_passes(const Without& without) const {
  Without all = without;
  for (const Pass* pass : pipeline_.passes(without.names)) all.names.insert(pass->name);
  Report scratch;
  try {
    return !outcome(laid_out(forms(all, scratch), all, scratch)).ok;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::limit) throw;
    return true;
  }
}

Fault Search::culprit(const Without& without, const Outcome& found) const {
  const std::vector<const Pass*> passes = pipeline_.passes(without.names);
  if (passes.empty()) return {};
  const auto with_first = [&](std::size_t enabled) {
    Without fewer = without;
    for (std::size_t i = enabled; i < passes.size(); ++i) fewer.names.insert(passes[i]->name);
    return fewer;
  };
  const std::size_t at =
      first_culprit(passes.size(), [&](std::size_t enabled) { return fails(pipeline_, with_first(enabled), found); });
  Fault fault{.pass = passes[at]->name};
  narrow_to_rule(*passes[at], with_first(at + 1), found, fault);
  if (!fault.node.empty() || !verifier_.possible()) return fault;
  Report scratch;
  try {
    const Without shown = with_first(at + 1);
    fault.node = verifier_.first_wrong_node(runnable(forms(shown, scratch), shown, scratch), found);
  } catch (const Error&) {  // the pass itself throws
  }
  return fault;
}

void Search::narrow_to_rule(const Pass& pass, const Without& without, const Outcome& found, Fault& fault) const {
  const auto with_first = [&](std::size_t enabled) {
    Without fewer = without;
    for (std::size_t i = enabled; i < pass.rules.size(); ++i) fewer.names.insert(pass.rules[i].name);
    return fewer;
  };
  if (pass.rules.empty() || fails(pipeline_, with_first(0), found)) return;  // what its rules do not answer for
  const std::size_t at = first_culprit(
      pass.rules.size(), [&](std::size_t enabled) { return fails(pipeline_, with_first(enabled), found); });
  fault.rule = pass.rules[at].name;
  const Without shown = with_first(at + 1);
  RuleLimit limit;
  const auto fails_after = [&](int times) {
    limit = {.rule = fault.rule, .left = times};
    return fails(pipeline_.limited(limit), shown, found);
  };
  if (!fails_after(INT_MAX) || limit.fired == 0) return;
  const std::size_t times = static_cast<std::size_t>(limit.fired);
  const std::size_t last = first_culprit(times, [&](std::size_t n) { return fails_after(static_cast<int>(n)); });
  fails_after(static_cast<int>(last + 1));
  fault.node = limit.last;
}

Fault Search::culprit_kernel(const Pipeline::Forms& forms, const Without& without, const Outcome& found) const {
  Report scratch;
  Model copy = laid_out(forms, without, scratch);
  std::vector<std::string> names;
  for (const Node* node : fused_nodes(copy.graph())) names.push_back(node->name);
  const auto fails_with_first = [&](std::size_t fused) {
    Pipeline::Forms fewer = forms;
    revert(*fewer.fused, {names.begin() + static_cast<std::ptrdiff_t>(fused), names.end()});
    return verifier_.shares_fault(runnable(fewer, without, scratch), found);
  };
  if (!forms.fused || names.empty() || fails_with_first(0)) return {};
  const std::string& name = names[first_culprit(names.size(), fails_with_first)];
  for (const Node* node : fused_nodes(copy.graph()))
    if (node->name == name) return {.kernel = kernel_of(*node, pipeline_.options().target), .node = node->label()};
  return {};
}

}  // namespace modelflow
