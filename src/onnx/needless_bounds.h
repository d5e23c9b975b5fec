// Bounds at 0 that no run needs.
#pragma once

#include <string>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow {

/// An extent behind a convolution is no negative number, so that max(n - 2, 0) is n - 2 in every run wherever n - 2 is
/// one. Where it would be less, ONNX Runtime refuses the run, whatever the batch: it executes all nodes of the main
/// graph. Those of branches and bodies need not run and tell nothing; what is bounded in them may lose its bound as
/// well.
class NeedlessBounds {
 public:
  NeedlessBounds() = default;
  explicit NeedlessBounds(const Graph& graph);

  bool empty() const { return extents_.empty(); }
  /// The dim, without the bounds that are none.
  Dim without(const Dim& dim) const;
  /// Whether there is such a bound in the shape of a value.
  bool stand_in(const Graph& graph) const;

 private:
  void add(const Dim& extent);
  Dim meaning(const std::string& symbol) const;

  std::vector<Dim> extents_;  // with a minus in them
};

}  // namespace modelflow
