#pragma once

#include <filesystem>
#include <vector>

#include "modelflow/error.h"
#include "modelflow/runtime.h"

namespace modelflow::tools {

/// Reads numpy's .npz (one archive = one set of inputs, one member per input) or a directory of them in name order.
/// Throws Error(invalid_input) with one line on anything else.
std::vector<Feeds> read_feeds(const std::filesystem::path& path);

}  // namespace modelflow::tools
