// Nodes of a reference in double precision.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>

#include "modelflow/model.h"

namespace modelflow {

/// `value` cast to another type, in front of `before`; null: behind all nodes.
Value& cast_to(Graph& graph, Value& value, DType type, Node* before);

/// Computes a float32 node in double precision: these of its inputs (where they are) are cast, and its result back.
void widen(Node& node, std::initializer_list<std::size_t> inputs);

/// The model with `make_exact` applied to every node with a float32 operand and a result that `is_one` holds of, in
/// subgraphs too; nothing where there is none.
std::optional<Model> with_exact(const Model& model, const std::function<bool(const Node&)>& is_one,
                                const std::function<void(Node&)>& make_exact);

}  // namespace modelflow
