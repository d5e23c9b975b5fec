// What a model consists of, in numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"

namespace modelflow {

/// Counts of the nodes (subgraphs included; our pool names as "modelflow.Conv"), weights and arithmetic. Operations
/// with unknown extents count as if those were 1.
ModelStats stats(const Model& model);
/// The same of a model whose types were inferred already: as they are.
ModelStats typed_stats(const Model& model);
/// The same of what passes made of such a model: types are inferred anew where that may tell extents.
ModelStats changed_stats(const Model& model);

/// The op as ModelStats::ops has it.
std::string shown_op(const Node& node);
/// What a node computes, also when it carries a pool name.
Call call_by_kind(const Node& node);

/// Counts what the original and the result compute and hold on inputs of these extents (what a Loop repeats once), and
/// draws them; `result` null: it is the original. `fused`: the result before layout, for what its nodes stand for.
void describe_at(const Model& original, const Model* result, const Model& fused,
                 const std::map<std::string, Dims>& inputs, Report& report);

/// The fused nodes of a finished model: which kernel runs them on the target, how long on inputs of these extents, and
/// what they stand for.
std::vector<FusedReport> fused_report(const Model& model, const std::map<std::string, Dims>& inputs,
                                      const Target& target);

}  // namespace modelflow
