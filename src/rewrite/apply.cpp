// The pass that applies rules until none fires.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>

#include "modelflow/modelflow.h"
#include "src/graph/op_name.h"
#include "src/rewrite/commit.h"
#include "src/rewrite/match.h"

namespace modelflow {
namespace {

using pattern::Tree;

void root_ops(const Tree& tree, std::unordered_set<std::string>& ops) {
  if (tree.kind == Tree::Kind::op) ops.insert(tree.ops.begin(), tree.ops.end());
  if (tree.kind == Tree::Kind::product) ops.insert({"Mul", "Div"});
  if (tree.kind == Tree::Kind::either) {
    for (const Pattern& alternative : tree.inputs) root_ops(*alternative, ops);
  }
}

struct Extent {
  int nodes = 0, depth = 0;
};

/// How many nodes a pattern spans, and how many levels.
Extent extent(const Tree& tree) {
  Extent all;
  for (const Pattern& input : tree.inputs) {
    const Extent one = extent(*input);
    all.nodes = tree.kind == Tree::Kind::either ? std::max(all.nodes, one.nodes) : all.nodes + one.nodes;
    all.depth = std::max(all.depth, one.depth);
  }
  if (tree.kind == Tree::Kind::op) return {all.nodes + 1, all.depth + 1};
  const int factors = static_cast<int>(tree.inputs.size());
  if (tree.kind == Tree::Kind::product) return {all.nodes + factors - 1, all.depth + factors};
  return all;
}

/// Rules by the op of their root.
struct Table {
  std::vector<Rule> rules;
  std::vector<int> nodes;
  struct OfDomain {
    std::string domain;
    std::vector<std::size_t> rules = {};
  };
  std::map<std::string, std::vector<OfDomain>, std::less<>> by_op;  ///< without its domain
  int depth = 1;

  explicit Table(std::vector<Rule> list) : rules(std::move(list)) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      std::unordered_set<std::string> ops;
      root_ops(*rules[i].from, ops);
      if (ops.empty()) throw Error(ErrorKind::internal, "rule '" + rules[i].name + "': its pattern is not an op");
      for (const std::string& op : ops) rules_of(split_op(op)).push_back(i);
      const Extent size = extent(*rules[i].from);
      nodes.push_back(size.nodes);
      depth = std::max(depth, size.depth);
    }
  }
  std::vector<std::size_t>& rules_of(const OpName& name) {
    std::vector<OfDomain>& domains = by_op[std::string(name.op)];
    for (OfDomain& one : domains)
      if (one.domain == name.domain) return one.rules;
    return domains.emplace_back(OfDomain{std::string(name.domain)}).rules;
  }
  const std::vector<std::size_t>* find(const Node& node) const {
    const auto it = by_op.find(node.op());
    if (it == by_op.end()) return nullptr;
    for (const OfDomain& one : it->second)
      if (one.domain == node.domain()) return &one.rules;
    return nullptr;
  }
};

class Rewriter {
 public:
  Rewriter(const Table& table, Graph& graph, Context& context)
      : table_(table), graph_(graph), context_(context), closest_(table.rules.size()), disabled_(table.rules.size()) {
    for (std::size_t i = 0; i < table.rules.size(); ++i) {
      disabled_[i] = context.options.disabled.contains(table.rules[i].name);
    }
  }

  int run() {
    for (const auto& node : graph_.nodes()) push(*node);
    const std::size_t most = 4 * graph_.nodes().size() + 1000;
    std::size_t hits = 0;
    // From the end: the largest pattern that ends in a node is found before the parts that it is made of.
    while (!stack_.empty() && hits < most) {
      Node* node = stack_.back();
      stack_.pop_back();
      if (queued_.erase(node) && visit(*node)) ++hits;
    }
    if (hits == most) context_.note("rules went on changing each other's results and were stopped");
    if (hits > 0) graph_.prune();
    return static_cast<int>(hits);
  }

 private:
  void push(Node& node) {
    if (table_.find(node) && queued_.insert(&node).second) stack_.push_back(&node);
  }

  /// The readers of values that changed, as far as a pattern reaches.
  void push_readers(const std::vector<const Value*>& values) {
    std::vector<const Value*> level = values;
    std::unordered_set<const Node*> seen;
    for (int depth = 0; depth < table_.depth && !level.empty(); ++depth) {
      std::vector<const Value*> next;
      for (const Value* value : level) {
        for (const Use& use : value->uses()) {
          if (&use.node->graph() != &graph_ || !seen.insert(use.node).second) continue;
          push(*use.node);
          for (const Value* output : use.node->outputs()) {
            if (output) next.push_back(output);
          }
        }
      }
      level = std::move(next);
    }
  }

  void missed(std::size_t rule, const Node& node, const std::string& reason, std::size_t reached,
              std::size_t closeness) {
    closest_[rule] = closeness;
    context_.miss(table_.rules[rule].name, &node, reason, static_cast<int>(reached));
  }

  bool visit(Node& node) {
    for (const std::size_t i : *table_.find(node)) {
      const Rule& rule = table_.rules[i];
      if (disabled_[i]) continue;
      Matcher matcher(rule);
      if (matcher.match(node)) {
        if (context_.limit && !context_.limit->admits(rule.name, node)) continue;
        if (apply(i, matcher)) return true;
        continue;
      }
      // A root alone says nothing when the pattern is larger.
      const bool close = matcher.reached() > 1 || table_.nodes[i] == 1;
      if (close && matcher.closeness() > closest_[i])
        missed(i, node, matcher.reason(), matcher.reached(), matcher.closeness());
    }
    return false;
  }

  bool apply(std::size_t index, const Matcher& matcher) {
    const Rule& rule = table_.rules[index];
    const Match& match = matcher.result();
    Commit commit(rule, match, matcher.numbers_may_enlarge(), context_);
    std::vector<const Value*> changed;  // what stands in place of the outputs, what has fewer readers now
    commit.on_erase = [&](Node& node) {
      queued_.erase(&node);
      for (const Value* output : node.outputs()) std::erase(changed, output);
      for (const Value* input : node.inputs()) {
        if (input && input->producer()) changed.push_back(input);
      }
    };
    const std::size_t matched = match.nodes().size();
    if (const Verdict verdict = commit.run(); !verdict) {
      if (2 * matched + 2 > closest_[index])  // beyond every condition
        missed(index, match.root(), verdict.reason, matched, 2 * matched + 2);
      return false;
    }
    context_.hit(rule.name);
    for (const Value* value : commit.replacements()) {
      if (value) changed.push_back(value);
    }
    push_readers(changed);
    for (Node* node : commit.made()) push(*node);
    return true;
  }

  const Table& table_;
  Graph& graph_;
  Context& context_;
  std::vector<Node*> stack_;
  std::unordered_set<const Node*> queued_;
  std::vector<std::size_t> closest_;  // per rule: how much of it fitted at its closest miss
  std::vector<bool> disabled_;
};

}  // namespace

Pass rewrite(std::string name, std::string doc, std::vector<Rule> rules) {
  const auto table = std::make_shared<const Table>(rules);
  return {.name = std::move(name),
          .doc = std::move(doc),
          .run = [table](Graph& graph, Context& context) { return Rewriter(*table, graph, context).run(); },
          .rules = std::move(rules)};
}

}  // namespace modelflow
