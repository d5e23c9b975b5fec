// A figure of merit that a command computes.
#pragma once

#include <functional>
#include <string>

#include "modelflow/model.h"

namespace modelflow::tools {

/// A figure of merit that a command computes: {} in it is the file of the model, $MODELFLOW_PLUGIN the plugin to
/// register, the last word that it prints the figure. Throws Error(usage) when it has no {}, which would give every
/// model the same figure; when it runs, where it fails or prints no number.
std::function<double(const Model&)> score_command(const std::string& command);

}  // namespace modelflow::tools
