// Einsum that sums nothing -> a product of its operands, each with its axes in the order of the result.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/normalize/equation.h"

namespace modelflow::passes {
namespace {

using namespace pattern;

std::string operand_name(std::size_t i) { return std::string(1, static_cast<char>('a' + i)); }

Verdict sums_nothing(const Match& m) {
  const std::optional<Terms> terms = read_terms(m.root().attrs.text("equation"));
  if (!terms) return no("the equation has an ellipsis or a repeated axis");
  if (terms->operands.size() != m.root().inputs().size()) return no("the equation is of another number of operands");
  std::string all;
  for (std::size_t i = 0; i < terms->operands.size(); ++i) {
    const Value& operand = m.value(operand_name(i));
    if (rank_of(&operand) != terms->operands[i].size()) return no("its rank is unknown", operand.name());
    all += terms->operands[i];
  }
  const auto within = [](const std::string& axes, const std::string& others) {
    return std::ranges::all_of(axes, [&](char axis) { return has_axis(others, axis); });
  };
  if (!within(all, terms->y)) return no("an axis is summed");
  return within(terms->y, all) ? yes() : no("the result has an axis that no operand has");
}

/// The operand with an axis for each of the result, of one element where it has none.
Value& spread(Build& build, Value& operand, const std::string& axes, const std::string& y) {
  std::string order;
  Ints added;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (has_axis(axes, y[i]))
      order += y[i];
    else
      added.push_back(static_cast<std::int64_t>(i));
  }
  Value& turned = ordered(build, operand, axes, order);
  return added.empty() ? turned : with_axes(build, "Unsqueeze", turned, added);
}

std::vector<Value*> product(const Match& m, Build& build) {
  const Terms terms = *read_terms(m.root().attrs.text("equation"));
  Value* all = nullptr;
  for (std::size_t i = 0; i < terms.operands.size(); ++i) {
    Value& factor = spread(build, m.value(operand_name(i)), terms.operands[i], terms.y);
    all = all ? &build.op("Mul", {all, &factor}) : &factor;
  }
  return {all};
}

}  // namespace

Rule outer_product(std::size_t operands) {
  std::vector<Pattern> inputs;
  for (std::size_t i = 0; i < operands; ++i) inputs.push_back(any(operand_name(i)));
  return {.name = "einsum-to-mul",
          .doc = "Einsum(bld,dn->bldn) -> Mul of Unsqueeze",
          .from = op("Einsum", inputs),
          .when = {sums_nothing},
          .into = product};
}

}  // namespace modelflow::passes
