// Fused nodes into what goes into a file, and back.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// Turns the fused nodes of a graph into what goes into a file: each gets its pool name (Conv_0, Conv_1, ...: one per
/// distinct body), the model the functions of these names and the opset import of our domain. Where the pool of a kind
/// runs out, the body is written out in place. Raises the IR version to 8 (functions), never anything else.
void emit_functions(Model& model);

/// The inverse: calls of functions of our domain are written out as the standard ops they stand for.
void absorb_functions(Model& model);

/// Takes out the functions that nothing calls.
void drop_uncalled(Model& model);

}  // namespace modelflow
