// What a precision that is asked for means for passes of float32.
#pragma once

#include "modelflow/modelflow.h"

namespace modelflow::passes {

/// Whether convolutions are wanted in lower precision too, not products and recurrent layers alone.
bool lowers_convolutions(const Options& options);
/// Whether other ops take their place then: in 16 bits on a GPU they stay what they are.
bool replaces_convolutions(const Options& options);
/// Whether they are wanted in 8 bits.
bool quantizes_convolutions(const Options& options);
/// Whether every op stays what it is: in float32, or in 16 bits throughout on a GPU.
bool keeps_ops(const Options& options);

}  // namespace modelflow::passes
