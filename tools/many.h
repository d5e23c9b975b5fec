// Many models, one after the other.
#pragma once

#include <functional>

#include "optimize_options.h"
#include "supervised.h"

namespace modelflow::tools {

/// Optimizes every model that is given, and of folders every .onnx file below them, to the same place below
/// arguments.output (reports below the report folder, as pages), each in a process of its own, so that one that fails
/// stops none of the others; prints a table. `one` is what is done with each. Gives the exit code of the first that
/// failed, 0 where none did.
int optimize_many(const Arguments& arguments, const std::function<int(Arguments&, Step&)>& one);

}  // namespace modelflow::tools
