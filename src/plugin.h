// The plugin of this process for what is made for a target.
#pragma once

#include <filesystem>

#include "modelflow/target.h"

namespace modelflow {

/// What sessions here register to run what is made for this target; empty where its kernels cannot run: sessions of
/// this process are on the CPU.
std::filesystem::path plugin_for(const Target& target);

}  // namespace modelflow
