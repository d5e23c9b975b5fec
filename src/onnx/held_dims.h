// The dims that a type says.
#pragma once

#include <functional>

#include "modelflow/graph.h"

namespace modelflow {

/// Each dim becomes what `change` makes of it, of tensors inside of sequences, optionals and maps too.
void change_dims(Type& type, const std::function<Dim(const Dim&)>& change);

}  // namespace modelflow
