// What a model consists of, in numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// Counts of the nodes (subgraphs included; our pool names as "modelflow.Conv"), weights and arithmetic. Operations
/// with unknown extents count as if those were 1.
ModelStats stats(const Model& model);
/// The same of a model whose types were inferred already: as they are.
ModelStats typed_stats(const Model& model);
/// The same of what passes made of such a model: types are inferred anew where that may tell extents.
ModelStats changed_stats(const Model& model);

/// Multiplications and additions in one run on inputs of these extents. What a Loop repeats counts once.
double flops_at(const Model& model, const std::map<std::string, Dims>& inputs);

/// The fused nodes of a finished model: which kernel runs them on the target, how long on inputs of these extents, and
/// what they stand for.
std::vector<FusedReport> fused_report(const Model& model, const std::map<std::string, Dims>& inputs,
                                      const Target& target);

}  // namespace modelflow
