// How long a model would take on a target, by costs alone: nothing is run, and nothing is known of how it comes out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/target.h"

namespace modelflow {

struct Prediction {
  double seconds = 0;  ///< of all nodes, one after the other
  double floor_seconds =
      0;  ///< no program is faster: all products at the peak, or weights, inputs and outputs moved once
  std::size_t nodes = 0;
  std::size_t unknown = 0;  ///< of them, those some of whose extents nobody knows: these count as 1
};

/// For inputs of these extents. Fused nodes take what their kernels say, others a launch and the time of their products
/// or of their bytes; views and arithmetic on extents take none. `half`: float32 counts as this type (undefined: as
/// what it is). Extents that types in the model do not tell are those of values of that name in `others`.
Prediction predict(const Model& model, const std::vector<const Model*>& others, const Target& target, DType half,
                   const std::map<std::string, Dims>& inputs);

}  // namespace modelflow
