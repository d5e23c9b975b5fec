// Symbols of extents: told, and forgotten.
#pragma once

#include "modelflow/graph.h"

namespace modelflow {

/// One symbol as it is, and nothing computed from it.
bool is_symbol(const Dim& dim);

/// Extents that are no numbers become unknown: a symbol stands for an extent of one call of a function, of one trip of
/// a loop or of one element of a sequence, and the next has its own.
void forget_symbols(Type& type);
/// The same of all inputs and results in a graph, and in those inside of it.
void forget_symbols(const Graph& graph);

}  // namespace modelflow
