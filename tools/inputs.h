#pragma once

#include <filesystem>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow::tools {

/// Reads numpy's .npz (one archive = one set of inputs, one member per input) or a directory of them in name order.
/// Throws Error(invalid_input) with one line on anything else.
std::vector<Feeds> read_feeds(const std::filesystem::path& path);
/// The same archives, each read when it is asked for: they need not fit into memory together.
CalibrationData read_one_by_one(const std::filesystem::path& path);

}  // namespace modelflow::tools
