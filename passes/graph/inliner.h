// A subgraph's contents in place of the node that owns it.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "modelflow/graph.h"

namespace modelflow::passes {

/// Moves the contents of a subgraph in front of the node that owns it.
class Inliner {
 public:
  Inliner(Graph& outer, Node& owner);

  /// An input of the subgraph is this value outside.
  void bind(Value& input, Value& outside) { take(input, outside); }
  void move(Graph& branch);

  /// Where a value of the branch, or one that the branch captured, is found now.
  Value* moved(Value* value) const {
    const auto found = places_.find(value);
    return found == places_.end() ? value : found->second;
  }

 private:
  void move(Node& node);
  void take(Value& from, Value& to);
  std::string free_name(const std::string& name);

  Graph& outer_;
  Node& owner_;
  std::unordered_map<const Value*, Value*> places_;
  std::unordered_set<std::string> taken_;  ///< names of nodes outside
};

}  // namespace modelflow::passes
