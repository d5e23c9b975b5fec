// Y of a fused recurrent layer in the order that its reader wants.
#pragma once

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Y of a fused LSTM or GRU as its reader wants it: in another order of axes, directions and units as one axis, and
/// without the Transposes, Squeezes and Reshapes that did so. Returns the number of changes.
int order_y(Node& fused, Context& context);

}  // namespace modelflow::passes
