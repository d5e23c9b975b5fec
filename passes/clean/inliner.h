#pragma once

#include <unordered_map>

#include "modelflow/graph.h"

namespace modelflow::passes {

/// Moves the contents of a subgraph in front of the node that owns it.
class Inliner {
 public:
  Inliner(Graph& outer, Node& owner) : outer_(outer), owner_(owner) {}

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

  Graph& outer_;
  Node& owner_;
  std::unordered_map<const Value*, Value*> places_;
};

}  // namespace modelflow::passes
