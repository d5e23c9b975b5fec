// A part of a model cut out; a fused node put back into standard ops.
#pragma once

#include <string>
#include <vector>

#include "modelflow/model.h"

namespace modelflow {

/// A model of these nodes only (of one graph, in its order). Values from outside become inputs, values that anyone
/// outside reads become outputs; all under their own names. Functions that they call come along.
Model extract(const Model& model, const std::vector<const Node*>& nodes);

/// Puts the body of its op, standard ops, in place of this fused node.
void revert(Model& model, Node& fused);
/// The same for the fused nodes of these names, wherever they are; types are inferred again.
void revert(Model& model, const std::vector<std::string>& names);
/// Gives every fused node a name of its own, subgraphs included.
void name_fused_nodes(Model& model);
/// The same for all nodes of the main graph, after what they make.
void name_nodes(Model& model);
/// Every fused node, subgraphs included.
std::vector<Node*> fused_nodes(Graph& graph);

}  // namespace modelflow
