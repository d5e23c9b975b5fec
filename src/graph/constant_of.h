// The numbers of a value that no input decides.
#pragma once

#include "modelflow/graph.h"

namespace modelflow {

/// Of an initializer, or of a Constant node, as which Paddle keeps its weights; null where there are none.
inline const Tensor* constant_of(const Value& value) {
  const Node* producer = value.producer();
  return producer && producer->is("Constant") ? producer->attrs.tensor("value") : value.constant();
}

}  // namespace modelflow
