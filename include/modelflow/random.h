// Which nodes draw random numbers.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// True for a node that draws random numbers, itself, in a subgraph or in a local function of `model` that it calls.
/// Where it stands and how often it runs is part of what it computes, seeded or not: such a node is not folded, merged
/// with its twin, repeated, or moved to where the elements lie in another order.
bool draws(const Node& node, const Model* model = nullptr);
bool draws(const Graph& graph, const Model* model = nullptr);

}  // namespace modelflow
