#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "modelflow/error.h"
#include "modelflow/runtime.h"

namespace modelflow::tools {

/// Reads numpy's .npz (one archive = one set of inputs, one member per input) or a directory of them in name order.
/// Throws Error(invalid_input) with one line on anything else.
std::vector<Feeds> read_feeds(const std::filesystem::path& path);

/// "x:1,3,224,224" -> ("x", {1, 3, 224, 224}); input names may hold colons themselves. Throws Error(usage).
std::pair<std::string, Dims> parse_shape(const std::string& text);

}  // namespace modelflow::tools
