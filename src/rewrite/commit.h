// The step from a match to the changed graph.
#pragma once

#include <functional>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow {

/// Replaces what a rule matched by what it makes, or undoes it all and says why not.
class Commit {
 public:
  Commit(const Rule& rule, const Match& match, bool numbers_may_enlarge, Context& context)
      : rule_(rule),
        match_(match),
        numbers_may_enlarge_(numbers_may_enlarge),
        context_(context),
        build_(match.root().graph(), match.root(), context) {}

  Verdict run();
  const std::vector<Node*>& made() const { return build_.made(); }
  /// The values that stand where the outputs of the root stood.
  const std::vector<Value*>& replacements() const { return values_; }
  /// Called with every node in front of its erasure.
  std::function<void(Node&)> on_erase;

 private:
  Verdict check() const;
  Verdict check_value(const Value& old, const Value& by) const;
  bool replace();
  void describe();
  void erase_unread();

  const Rule& rule_;
  const Match& match_;
  bool numbers_may_enlarge_;
  Context& context_;
  Build build_;
  std::vector<Value*> values_;
};

}  // namespace modelflow
