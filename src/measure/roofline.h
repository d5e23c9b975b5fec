// What nodes compute, and which share of the machine's peak that is.
#pragma once

#include "modelflow/graph.h"
#include "modelflow/kernel.h"
#include "modelflow/runtime.h"
#include "src/core/peak.h"

namespace modelflow {

/// Multiplications and additions of products in one run of a node.
struct Work {
  double operations = 0;  ///< 0 where a node has no products, or none that are known
  Factors factors = Factors::float32;
  double share_of(const Peak& peak, double seconds) const {
    const double most = factors == Factors::int8 ? peak.int8 : factors == Factors::bf16 ? peak.bf16 : peak.float32;
    return seconds > 0 ? operations / seconds / most : 0;
  }
};

/// The work of convolutions, products, attention and recurrent layers, ours and ONNX Runtime's own; none for others.
/// `time` has the extents; `node` the attributes where there are any to know, else it is null. Convolutions count as
/// the definition computes them: by minimal filtering they do less, and may come out above the peak, as may products of
/// float32 on AMX.
Work work_of(const NodeTime& time, const Node* node);
/// The work of a call.
Work work_of(const Call& call);
/// The work of a node by the types of its values; extents that are not known count as 1.
Work work_of(const Node& node);
/// Whether a node is one of those.
bool has_products(const Node& node);

}  // namespace modelflow
