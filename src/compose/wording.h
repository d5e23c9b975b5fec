// Types and lists of names as messages have them.
#pragma once

#include <string>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow {

/// "float32[N,10]"; what is no tensor is called so.
std::string text(const Type& type);

/// "a, b and c", the first few of many; "nothing".
std::string listed(const std::vector<std::string>& names);

}  // namespace modelflow
