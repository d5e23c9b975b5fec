// Values inside of a graph that other parts of the model call by name, kept while passes run.
#pragma once

#include <cstddef>

#include "modelflow/graph.h"

namespace modelflow {

/// Whether other parts of the model (quantization annotations, training info) name a value that a node in it makes.
bool has_named_values(const Graph& graph);

/// For as long as it lives such values are outputs of their graph. So a pass leaves them their names, types and
/// layouts, as it does for all outputs.
class Held {
 public:
  explicit Held(Graph& graph);
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Graph& graph_;
  std::size_t outputs_;  ///< of its own
};

}  // namespace modelflow
