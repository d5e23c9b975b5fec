// A folder of models, one after the other.
#pragma once

#include <functional>

#include "optimize_options.h"
#include "supervised.h"

namespace modelflow::tools {

/// Optimizes every .onnx file below arguments.input to the same place below arguments.output (reports below the report
/// folder, as pages), each in a process of its own, so that one that fails stops none of the others; prints a table.
/// `one` is what is done with each. Gives the exit code of the first that failed, 0 where none did.
int optimize_folder(const Arguments& arguments, const std::function<int(Arguments&, Step&)>& one);

}  // namespace modelflow::tools
