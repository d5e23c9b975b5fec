// What this process keeps of the memory that it frees.
#pragma once

#include "modelflow/model.h"

namespace modelflow::tools {

/// Sessions come and go, each with as much memory as the model has weights: what one gives back the next one takes, as
/// far as it is no more than that. New pages from the kernel cost nearly as much as all the rest (a model of 1.8 GB:
/// 71 s in place of 83, 38 of which the kernel took).
void keep_freed_memory(const Model& model);

}  // namespace modelflow::tools
