// Every graph of a model in one list, for what test models are changed and searched by.
#pragma once

#include <vector>

#include "modelflow/model.h"

namespace modelflow {

/// The main graph and the subgraphs in it, each behind the one that encloses it: places in the list are the same in a
/// copy of the model.
inline std::vector<Graph*> all_graphs(const Model& model) {
  std::vector<Graph*> graphs = {&const_cast<Model&>(model).graph()};
  for (std::size_t i = 0; i < graphs.size(); ++i)
    for (const auto& node : graphs[i]->nodes())
      for (Graph* inner : node->subgraphs()) graphs.push_back(inner);
  return graphs;
}

}  // namespace modelflow
