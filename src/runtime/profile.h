// Profiles that ONNX Runtime writes.
#pragma once

#include <filesystem>
#include <vector>

#include "modelflow/runtime.h"

namespace modelflow {

/// Ends the profiling of a session; the file, events in Chrome's format, is the caller's to remove.
std::filesystem::path end_profile(Session& session);

/// The node times in it, slowest first.
std::vector<NodeTime> read_profile(const std::filesystem::path& file);

}  // namespace modelflow
