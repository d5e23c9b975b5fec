// The parts of a laid-out model between which selection decides.
#pragma once

#include <string>
#include <vector>

#include "modelflow/model.h"

namespace modelflow {

/// Fused nodes that stand or fall together because a channels-last value joins them, with what lies between them
/// (transposes, elementwise ops). Nodes that nothing joins are regions of their own; equal ones (op, attributes,
/// shapes) share one region, of which the first is the specimen.
struct Region {
  std::string name;
  std::vector<const Node*> nodes;  ///< of the first copy, in graph order
  std::vector<std::string> fused;  ///< names of the fused nodes of all copies
  int copies = 1;
};

/// The regions of the main graph after layout.
std::vector<Region> find_regions(const Model& model);

/// The nodes that compute `outputs` from `inputs` (value names) and constants alone; empty when there is no such cut.
std::vector<const Node*> slice(const Model& model, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs);

}  // namespace modelflow
