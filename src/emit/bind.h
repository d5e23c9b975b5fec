// A function body for one call of it.
#pragma once

#include "modelflow/model.h"

namespace modelflow {

/// Replaces, in a copy of a function body (nested graphs included), references to attributes of the call by their
/// values: those of the call, else the function's defaults; a reference to neither is dropped, as the format says.
void bind_attributes(Graph& body, const Attrs& given, const Attrs& defaults);

}  // namespace modelflow
