// The matcher.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "modelflow/pattern.h"

namespace modelflow {

/// One attempt to match a rule at one node, by backtracking over operand orders and alternatives.
class Matcher {
 public:
  explicit Matcher(const Rule& rule) : rule_(rule) {}
  /// True when the pattern fits, nothing outside reads its inner values and every condition holds.
  bool match(Node& root);
  const Match& result() const { return match_; }
  /// A number was written as a tensor that could enlarge what it is combined with.
  bool numbers_may_enlarge() const { return !wide_numbers_.empty(); }
  /// How many nodes fitted on the best attempt, and why it ended there.
  std::size_t reached() const { return failure_.reached; }
  /// Grows with reached(), and once more where the whole pattern fitted.
  std::size_t closeness() const { return failure_.closeness; }
  std::string reason() const;

 private:
  using Tree = pattern::Tree;
  /// What is left to match, as a list that lives on the stack of the recursion.
  struct Product;
  struct Goal {
    const Tree* tree = nullptr;
    Value* value = nullptr;
    const Goal* next = nullptr;
    const Product* product = nullptr;
  };
  /// The factors of a product: values still to be placed, patterns already used, the product of the numbers so far.
  struct Product {
    const Tree* tree;
    std::vector<Value*> pending;
    std::uint64_t used = 0;
    double number = 1;
    int numbers = 0;  ///< how many it is made of
  };
  struct Failure {
    std::size_t closeness = 0, reached = 0;
    const char* what = "";
    const Tree* tree = nullptr;
    const Value* value = nullptr;
    std::string detail;
  };

  bool solve(const Goal* goal);
  bool solve_variable(const Goal& goal);
  bool solve_number(const Goal& goal);
  bool solve_either(const Goal& goal);
  bool solve_value(const Goal& goal);
  bool solve_node(const Tree& tree, Node& node, const Goal* next);
  bool solve_inputs(const Tree& tree, const Node& node, bool swapped, const Goal* next);
  bool solve_product(const Product& product, const Goal* next);
  bool place(const Product& product, Value* value, const Goal* next);
  bool expand(const Product& product, Node& node, const Goal* next);
  bool root(const Tree& tree, Node& node);
  bool finish();
  bool inner_values_free();
  bool enter(Node& node);
  void leave(bool entered);
  bool fail(const char* what, const Tree* tree, const Value* value, std::string detail = {});

  const Rule& rule_;
  Match match_;
  std::vector<const Value*> wide_numbers_;
  Failure failure_;
};

}  // namespace modelflow
