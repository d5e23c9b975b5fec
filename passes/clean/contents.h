// What is known about the elements of small integer tensors.
#pragma once

#include <unordered_map>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow::passes {

/// One element of an integer tensor, as far as it can be told from the shapes of the model.
struct Element {
  Dim value;
  bool extent = false;  ///< made of dims of tensors: it cannot be negative
};
using Elements = std::vector<Element>;

/// The contents of the small integer tensors (rank 0 or 1) that shape arithmetic computes: Shape, Gather, Concat, Mul,
/// ... with symbolic dims kept as symbols.
///
///     Contents contents(graph);
///     contents.of(reshape.input(1));       // [batch, 12, seq, 64], or null
class Contents {
 public:
  explicit Contents(const Graph& graph);
  const Elements* of(const Value* value);

 private:
  std::optional<Elements> compute(const Node& node);
  std::optional<Elements> pick(const Node& node);
  std::optional<Elements> arithmetic(const Node& node);
  std::optional<Elements> joined(const Node& node);

  std::unordered_map<const Value*, Elements> known_;
};

}  // namespace modelflow::passes
