// Models brought into one form, so that they can stand in one file.
#pragma once

#include <string>
#include <vector>

#include "modelflow/compose.h"

namespace modelflow {

/// Brings all parts to the newest opset among them and writes functions out that cannot stay; gives the imports, the
/// functions and the metadata of the whole. Throws Error(unsupported) naming the part. `notes`: what was changed.
Model bring_together(std::vector<Part>& parts, std::vector<std::string>& notes);

}  // namespace modelflow
