// A Loop or Scan taken apart.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"
#include "modelflow/pass.h"

namespace modelflow::passes {

/// A Loop or a Scan taken apart: what goes round, what is collected, how often it runs. Values that a body gets from a
/// state that never changes count as the value outside.
struct Iteration {
  struct State {
    Value *inside, *initial, *next, *last;  ///< body input, node input, body output, node output (or null)
  };
  struct Stack {
    Value *step, *all;  ///< body output, node output (or null)
  };
  struct Sequence {
    Value *step, *all;  ///< body input, node input; along its first axis
  };
  Node* node = nullptr;
  Graph* body = nullptr;
  Value *number = nullptr, *keep_going = nullptr;  ///< body inputs of a Loop
  std::vector<State> states;
  std::vector<Stack> stacks;
  std::vector<Sequence> sequences;  ///< of a Scan
  std::int64_t trips = 0;           ///< known and at least 1

  /// `value` without Identity, and seen from outside where it comes from there.
  Value* resolve(Value* value) const;
  const State* state_of(const Value* inside) const;
  /// True for the number of the present trip, 0 at first, under Cast and views.
  bool counts(const Value* value) const;
};

/// Reads every Loop and Scan of the graph that has a known number of trips and lets `rewrite` put something in its
/// place. What is not rewritten is a miss of `rule` with the reason, if there is one. How many were.
int rewrite_loops(Graph& graph, Context& context, const char* rule,
                  Verdict (*rewrite)(const Iteration& iteration, Context& context));

}  // namespace modelflow::passes
