// Whether the invariants of a graph hold.
#pragma once

#include <string_view>

#include "modelflow/graph.h"
#include "modelflow/model.h"

namespace modelflow {

/// Checks what every edit must keep true: use lists, producers, topological order, unique names, scopes, types of
/// constants; nested subgraphs included. Throws Error(internal) that starts with `label`, the step that broke it.
void verify(const Graph& graph, std::string_view label = "graph");
void verify(const Model& model, std::string_view label = "model");

}  // namespace modelflow
