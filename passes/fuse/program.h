// Trees of elementwise nodes, and the programs that say what they compute.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "modelflow/pass.h"
#include "passes/graph/extents.h"

/// Nodes as lines of a program: attribute `program` of modelflow.Pointwise and modelflow.Reduce.
namespace modelflow::passes {

/// A node in a program: what it is called there, and which of its inputs it reads, in order. `op` is empty for what
/// programs do not have.
struct Line {
  std::string op;
  std::vector<std::size_t> operands;
};

/// A line as it is written: "Mul t0 x2", what line 0 gives times input 2.
struct Written {
  std::string op;
  std::vector<std::string> operands;
};

inline constexpr std::size_t kMostLines = 16;

/// A tree under construction. Its sink is the result; the values of all other `nodes` are read inside the tree only.
class Tree {
 public:
  /// `nodes` are in the tree already, the sink last. Nothing joins them that would be computed twice: smaller operands,
  /// and what is read on both sides of a reduction. With `sizes`, an operand is no smaller also where that is not
  /// proven but so for typical inputs: what it costs depends on it, what comes out does not.
  Tree(std::vector<Node*> nodes, Extents& extents, std::int64_t opset, TypicalSizes* sizes = nullptr);

  /// Takes producers in until none fits any more.
  void grow(const std::unordered_set<const Node*>& taken, std::size_t most_inputs);
  const std::unordered_set<Node*>& nodes() const { return nodes_; }
  /// Operands first, in the order in which they are read, so that equal trees are equal programs; what a reduction
  /// needs in front of it, the sink last.
  std::vector<Node*> ordered() const;

 private:
  bool fits(const Value& value);
  bool is_reduced(const Use& use) const;
  bool as_large(const Value& value, const Value& result);

  std::vector<Node*> spine_;  ///< the nodes that it began with
  Extents& extents_;
  std::int64_t opset_;
  TypicalSizes* sizes_;
  std::unordered_set<Node*> nodes_;
  std::unordered_set<const Node*> before_;  ///< those of them that a reduction needs
};

Line line_of(const Node& node, std::int64_t opset);
/// An activation without numbers of its own.
bool is_plain_activation(const std::string& kind);
/// An elementwise one: no reduction.
bool is_elementwise_line(const Node& node, std::int64_t opset);
/// What the nodes read of others, each once, in the order of reading: equal trees get equal programs.
std::vector<Value*> program_inputs(const std::vector<Node*>& nodes, std::int64_t opset);
/// "Mul x0 x1; Add t0 x2". `nodes` stand in running order; a reduction is called what it is.
std::string program_of(const std::vector<Node*>& nodes, const std::vector<Value*>& inputs, std::int64_t opset);
std::vector<Written> lines_of(const std::string& program);

}  // namespace modelflow::passes
