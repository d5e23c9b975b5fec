// Directories and room for files that are written.
#pragma once

#include <cstddef>
#include <filesystem>

namespace modelflow {

/// Throws Error(output) when `bytes` in one file, or `total` bytes together, cannot be written beside `target`.
void check_room(const std::filesystem::path& target, std::size_t bytes, std::size_t total);
/// Makes a rename in this directory durable.
void sync_directory(const std::filesystem::path& directory);
std::filesystem::path directory_of(const std::filesystem::path& file);

}  // namespace modelflow
