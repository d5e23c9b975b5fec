// Inputs from numpy's archives, and archives from inputs.
#pragma once

#include <filesystem>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// Inputs from numpy's .npz (one archive is one set, one array per input) or from a directory of them in name order.
/// Throws Error(invalid_input) with one line on anything else.
std::vector<Feeds> read_feeds(const std::filesystem::path& path);
/// The same archives, each read when it is asked for: they need not fit into memory together.
CalibrationData read_one_by_one(const std::filesystem::path& path);

/// Writes one archive, an array per input. Throws Error(output), and Error(unsupported) for types that numpy lacks.
void write_feeds(const std::filesystem::path& file, const Feeds& feeds);

}  // namespace modelflow
