// Patterns sought at a node, by backtracking.
#include "src/rewrite/match.h"

#include <algorithm>
#include <array>

#include "modelflow/error.h"
#include "src/graph/op_name.h"
#include "src/rewrite/splat.h"

namespace modelflow {
namespace {

constexpr std::size_t kMaxInputs = 16;

bool contains(const std::vector<Node*>& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

bool has_type(const Node& node, const std::vector<std::string>& types) {
  return std::any_of(types.begin(), types.end(), [&](const std::string& type) { return node.is(type); });
}

bool is_wide(const Tensor& constant) { return constant.rank() > 1 || constant.elements() != 1; }

}  // namespace

bool Matcher::match(Node& node) {
  match_ = {};
  match_.root_ = &node;
  wide_numbers_.clear();
  return root(*rule_.from, node);
}

bool Matcher::root(const Tree& tree, Node& node) {
  if (tree.kind == Tree::Kind::either) {
    return std::any_of(tree.inputs.begin(), tree.inputs.end(), [&](const Pattern& p) { return root(*p, node); });
  }
  if (tree.kind == Tree::Kind::product) return expand({.tree = &tree, .pending = {}}, node, nullptr);
  return tree.kind == Tree::Kind::op && has_type(node, tree.ops) && solve_node(tree, node, nullptr);
}

bool Matcher::solve(const Goal* goal) {
  if (!goal) return finish();
  if (goal->product) return solve_product(*goal->product, goal->next);
  switch (goal->tree->kind) {
    case Tree::Kind::optional: {
      if (!goal->value) return solve(goal->next);
      const Goal inner{.tree = goal->tree->inputs[0].get(), .value = goal->value, .next = goal->next};
      return solve(&inner);
    }
    case Tree::Kind::either:
      return solve_either(*goal);
    case Tree::Kind::product: {
      const Product whole{.tree = goal->tree, .pending = {goal->value}};
      return goal->value ? solve_product(whole, goal->next) : fail("an input is absent", goal->tree, nullptr);
    }
    case Tree::Kind::number:
      return solve_number(*goal);
    case Tree::Kind::op:
      return solve_value(*goal);
    default:
      return solve_variable(*goal);
  }
}

bool Matcher::solve_variable(const Goal& goal) {
  const Tree& tree = *goal.tree;
  Value* value = goal.value;
  if (!value) return fail("an input is absent", &tree, nullptr);
  if (tree.kind == Tree::Kind::constant && !value->constant()) return fail("is not constant", &tree, value);
  const auto [bound, fresh] = match_.values_.try_emplace(tree.name, value);
  if (!fresh && bound->second != value) {
    return fail("is not the value that the pattern has elsewhere, ", &tree, value, "'" + bound->second->name() + "'");
  }
  if (solve(goal.next)) return true;
  if (fresh) match_.values_.erase(tree.name);
  return false;
}

bool Matcher::solve_number(const Goal& goal) {
  const Tree& tree = *goal.tree;
  const std::optional<double> value = splat(goal.value);
  if (!value || !is_rounded(tree.number, *value, goal.value->dtype()))
    return fail("is not the number ", &tree, goal.value);
  const bool wide = is_wide(*goal.value->constant());
  if (wide) wide_numbers_.push_back(goal.value);
  if (solve(goal.next)) return true;
  if (wide) wide_numbers_.pop_back();
  return false;
}

bool Matcher::solve_either(const Goal& goal) {
  for (const Pattern& alternative : goal.tree->inputs) {
    const Goal inner{.tree = alternative.get(), .value = goal.value, .next = goal.next};
    if (solve(&inner)) return true;
  }
  return false;
}

bool Matcher::solve_value(const Goal& goal) {
  if (!goal.value) return fail("an input is absent", goal.tree, nullptr);
  Node* node = goal.value->producer();
  const bool fits = node && goal.value->output_index() == goal.tree->output && has_type(*node, goal.tree->ops);
  return fits ? solve_node(*goal.tree, *node, goal.next) : fail("is not ", goal.tree, goal.value);
}

bool Matcher::enter(Node& node) {
  if (contains(match_.nodes_, &node)) return false;
  match_.nodes_.push_back(&node);
  return true;
}

void Matcher::leave(bool entered) {
  if (entered) match_.nodes_.pop_back();
}

bool Matcher::solve_node(const Tree& tree, Node& node, const Goal* next) {
  if (&node.graph() != &match_.root_->graph())
    return fail("is computed outside of this subgraph", &tree, node.output());
  const bool entered = enter(node);
  const bool labelled = !tree.name.empty() && match_.labels_.try_emplace(tree.name, &node).second;
  const Verdict accepted = tree.accepts ? tree.accepts(node) : yes();
  if (!accepted)
    fail("", &tree, nullptr, node.label() + ": " + accepted.reason);
  else if (solve_inputs(tree, node, false, next) || (tree.commutes && solve_inputs(tree, node, true, next)))
    return true;
  if (labelled) match_.labels_.erase(tree.name);
  leave(entered);
  return false;
}

bool Matcher::solve_inputs(const Tree& tree, const Node& node, bool swapped, const Goal* next) {
  const std::size_t count = tree.inputs.size();
  if (count > kMaxInputs) throw Error(ErrorKind::internal, "rule '" + rule_.name + "': too many inputs in a pattern");
  for (std::size_t i = count; i < node.inputs().size() && !tree.more_inputs; ++i) {
    if (node.input(i)) return fail("is an input that the pattern does not have", &tree, node.input(i));
  }
  std::array<Goal, kMaxInputs> goals;
  for (std::size_t i = 0; i < count; ++i) {
    goals[i] = {.tree = tree.inputs[i].get(),
                .value = node.input(swapped ? count - 1 - i : i),
                .next = i + 1 < count ? &goals[i + 1] : next};
  }
  return solve(count ? goals.data() : next);
}

bool Matcher::inner_values_free() {
  for (const Node* node : match_.nodes_) {
    if (node == match_.root_) continue;
    for (const Value* value : node->outputs()) {
      if (!value) continue;
      if (value->is_graph_output()) return fail("is a graph output", nullptr, value);
      if (value->graph().pinned.contains(value->name())) return fail("is named elsewhere in the model", nullptr, value);
      for (const Use& use : value->uses()) {
        if (contains(match_.nodes_, use.node)) continue;
        return fail("has readers outside of the pattern, ", nullptr, value, use.node->label());
      }
    }
  }
  return true;
}

bool Matcher::finish() {
  if (!inner_values_free()) return false;
  for (const Condition& condition : rule_.when) {
    if (const Verdict verdict = condition(match_); !verdict) return fail("", nullptr, nullptr, verdict.reason);
  }
  return true;
}

std::string Matcher::reason() const {
  const Failure& f = failure_;
  std::string text;
  if (f.value) text = "'" + f.value->name() + "' ";
  text += f.what;
  const bool says_what = f.tree && (text.ends_with("is not ") || text.ends_with("number "));
  if (says_what) text += wanted(*f.tree);
  text += f.detail;
  if (says_what && f.tree->kind == Tree::Kind::op) {
    const Node* producer = f.value->producer();
    text += " but " + (producer ? joined_op(*producer) : std::string(f.value->constant() ? "a constant" : "an input"));
  }
  return text;
}

bool Matcher::fail(const char* what, const Tree* tree, const Value* value, std::string detail) {
  const std::size_t nodes = match_.nodes_.size();
  // A pattern that fitted as a whole (no tree is named) and failed a condition came further than any that did not.
  const std::size_t closeness = 2 * nodes + (tree ? 0 : 1);
  if (closeness < failure_.closeness) return false;
  // Of equals the last, unless it only says that an operand in the wrong order is a constant.
  if (closeness == failure_.closeness && tree && value && value->constant()) return false;
  failure_ = {closeness, nodes, what, tree, value, std::move(detail)};
  return false;
}

}  // namespace modelflow
