#pragma once

#include "modelflow/graph.h"
#include "modelflow/peak.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// Multiplications and additions of products in one run of a node.
struct Work {
  double operations = 0;  ///< 0 where a node has no products, or none that are known
  bool int8 = false;
  double share_of(const Peak& peak, double seconds) const {
    return seconds > 0 ? operations / seconds / (int8 ? peak.int8 : peak.float32) : 0;
  }
};

/// Of convolutions, products, attention and recurrent layers, ours and ONNX Runtime's own. `time` has the extents;
/// `node` the attributes where there are any to know, else it is null. Convolutions count as the definition computes
/// them: by minimal filtering they do less, and may come out above the peak.
Work work_of(const NodeTime& time, const Node* node);

}  // namespace modelflow
