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

std::vector<std::string> names_of(const std::vector<Value*>& values);

/// Where the value of this name stands. `kind`: "input" or "output"; `owner`: "the model", "'encoder'". Throws
/// Error(usage) that says what there is.
std::size_t place_of(const std::vector<Value*>& values, const std::string& name, const char* kind,
                     const std::string& owner);

}  // namespace modelflow
