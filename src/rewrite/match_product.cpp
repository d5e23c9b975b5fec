// Products as multisets of factors: Mul and Div nodes are opened one after the other, numbers are multiplied up, and
// every other factor is placed on one of the patterns.
#include <algorithm>
#include <bit>

#include "src/rewrite/match.h"
#include "src/rewrite/splat.h"

namespace modelflow {

bool Matcher::solve_product(const Product& product, const Goal* next) {
  if (product.pending.empty()) {
    const bool complete = std::popcount(product.used) == static_cast<int>(product.tree->inputs.size());
    if (!complete) return fail("has too few factors", product.tree, match_.root_->output());
    if (!is_rounded_product(product.tree->number, product.number, product.numbers)) {
      return fail("is scaled by another number", product.tree, match_.root_->output());
    }
    return solve(next);
  }
  Product rest = product;
  Value* value = rest.pending.back();
  rest.pending.pop_back();
  if (!value) return fail("an input is absent", product.tree, nullptr);
  if (const std::optional<double> number = splat(value)) {
    rest.number *= *number;
    ++rest.numbers;
    const bool wide = value->constant()->rank() > 1 || value->constant()->elements() != 1;
    if (wide) wide_numbers_.push_back(value);
    if (solve_product(rest, next)) return true;
    if (wide) wide_numbers_.pop_back();
    rest.number = product.number;
    rest.numbers = product.numbers;
  }
  if (place(rest, value, next)) return true;
  Node* node = value->producer();
  return node && expand(rest, *node, next);
}

/// `value` is one of the factors that the pattern names.
bool Matcher::place(const Product& product, Value* value, const Goal* next) {
  const std::vector<Pattern>& factors = product.tree->inputs;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (product.used >> i & 1) continue;
    Product placed = product;
    placed.used |= std::uint64_t{1} << i;
    const Goal others{.next = next, .product = &placed};
    const Goal factor{.tree = factors[i].get(), .value = value, .next = &others};
    if (solve(&factor)) return true;
  }
  return false;
}

/// `node` is a product itself, whose factors take its place. A divisor must be a number.
bool Matcher::expand(const Product& product, Node& node, const Goal* next) {
  const bool divides = node.is("Div");
  if ((!divides && !node.is("Mul")) || node.inputs().size() != 2 || &node.graph() != &match_.root_->graph()) {
    return fail("is not a product", product.tree, node.output());
  }
  const auto is_number = [](const Value* value) { return splat(value).has_value(); };
  const std::size_t open = product.tree->inputs.size() - static_cast<std::size_t>(std::popcount(product.used));
  const auto numbers = std::count_if(product.pending.begin(), product.pending.end(), is_number);
  // Two more factors, of which one may be a number, have to find patterns.
  if (product.pending.size() - static_cast<std::size_t>(numbers) + 1 > open) {
    return fail("has too many factors", product.tree, node.output());
  }
  Product opened = product;
  if (divides) {
    const std::optional<double> divisor = splat(node.input(1));
    if (!divisor || *divisor == 0 || !is_float(node.input(1)->dtype()))
      return fail("is divided by something that is not a number", product.tree, node.input(0));
    if (node.input(1)->constant()->elements() != 1 || node.input(1)->constant()->rank() > 1) {
      return fail("is divided by a tensor", product.tree, node.input(0));
    }
    opened.number /= *divisor;
    ++opened.numbers;
    opened.pending.push_back(node.input(0));
  } else {
    opened.pending.push_back(node.input(1));
    opened.pending.push_back(node.input(0));
  }
  const bool entered = enter(node);
  if (!entered) return false;  // a square: its factors cannot be taken apart twice
  if (solve_product(opened, next)) return true;
  leave(entered);
  return false;
}

}  // namespace modelflow
