// Main graphs as the report draws them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/report.h"

namespace modelflow {

/// The main graph of a model whose types are those of the inputs that ran. Extents that are not known count as 1.
GraphReport drawn(std::string name, const Model& sized);

/// The most that the values of the main graph hold at once, weights left out.
double activation_bytes(const Model& sized);

/// By node name, the values that the nodes of a main graph compute; names that several nodes have are left out.
using Results = std::map<std::string, std::vector<std::string>, std::less<>>;
Results results_of(const Model& model);

/// Fills in which nodes of `before` each node of `after` stands for: those between what it computes and what other
/// nodes of `after` compute. Values that both have under one name are the same. In another layout or precision a node
/// has other results: `plain` says what it computed before.
void find_sources(const GraphReport& before, const Results& plain, GraphReport& after);

}  // namespace modelflow
