// What passes note in their context: rules that fired, rules that almost did.
#include <algorithm>

#include "modelflow/modelflow.h"

namespace modelflow {

void Context::hit(std::string_view rule, int times) {
  if (step) step->hits[std::string(rule)] += times;
}

/// Keeps the closest miss of each rule, the last of equals: a report stays small however large the model is.
void Context::miss(std::string_view rule, const Node* node, std::string_view reason, int matched) {
  if (!step) return;
  const auto same_rule = [&](const Miss& miss) { return miss.rule == rule; };
  const auto known = std::find_if(step->misses.begin(), step->misses.end(), same_rule);
  if (known != step->misses.end() && known->matched > matched) return;
  Miss miss{std::string(rule), node ? node->label() : "", std::string(reason), matched};
  if (known != step->misses.end())
    *known = std::move(miss);
  else
    step->misses.push_back(std::move(miss));
}

void Context::note(std::string text) {
  if (!notes || std::find(notes->begin(), notes->end(), text) != notes->end()) return;
  notes->push_back(std::move(text));
}

bool RuleLimit::admits(std::string_view name, const Node& node) {
  if (name != rule) return true;
  if (left <= 0) return false;
  --left;
  ++fired;
  last = node.label();
  return true;
}

bool QuantizationPlan::allows(std::string_view node, Precision precision) const {
  const auto found = allowed.find(node);
  return found == allowed.end() || found->second.contains(precision);
}

}  // namespace modelflow
