// `optimize --triton DIR`: a model repository that Triton serves.
#pragma once

#include "optimize_options.h"

namespace modelflow::tools {

/// Where the model of a repository lies; makes the folders. Throws Error(output).
std::filesystem::path place_in_repository(const Arguments& arguments);

/// Beside the model, which is written: config.pbtxt, after measuring, and the plugin where the model uses it.
void complete_repository(const Arguments& arguments);

}  // namespace modelflow::tools
