// The price of bfloat16 in one line.
#pragma once

#include <string>

#include "modelflow/modelflow.h"

namespace modelflow {

/// Why --precision bf16 would not pay on a target without arithmetic for it, by how much, and what does, in one line.
/// Timed where the target is this machine, else by the cost model.
std::string bf16_price(const Options& options);

}  // namespace modelflow
