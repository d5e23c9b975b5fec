// What options switch off, by the names of stages, passes and rules.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// Throws Error(usage), with the nearest known name, when the options switch something that no stage has.
void check_names(const Options& options, const std::vector<Stage>& stages);

/// The stages, passes and rules that are left out: of a disabled stage all passes but those that are enabled or have an
/// enabled rule, of a disabled pass all rules but the enabled ones.
std::set<std::string> switched_off(const Options& options, const std::vector<Stage>& stages);

}  // namespace modelflow
