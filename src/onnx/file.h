// Directories and room for files that are written, and what goes into which.
#pragma once

#include <cstddef>
#include <filesystem>

#include "modelflow/model.h"

namespace modelflow {

/// Throws Error(output) when `bytes` in one file, or `total` bytes together, cannot be written beside `target`.
void check_room(const std::filesystem::path& target, std::size_t bytes, std::size_t total);
/// Makes a rename in this directory durable.
void sync_directory(const std::filesystem::path& directory);
/// Whether weights go into a file beside the model unless the user says otherwise.
bool keeps_weights_outside(const Model& model);
std::filesystem::path directory_of(const std::filesystem::path& file);

}  // namespace modelflow
