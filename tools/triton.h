// `optimize --triton DIR`: a model repository that Triton serves.
#pragma once

#include "optimize_options.h"
#include "supervised.h"

namespace modelflow::tools {

/// Where the model of a repository lies. Throws Error(output) where it cannot lie there; makes nothing.
std::filesystem::path place_in_repository(const Arguments& arguments);

/// Beside the model, which is written: config.pbtxt, after measuring, and the plugin where the model uses it.
void complete_repository(const Arguments& arguments, Step& at);

}  // namespace modelflow::tools
