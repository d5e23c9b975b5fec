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
/// While it lives, no other one of this folder does: runs that save there at once take turns at what belongs together.
/// A lock that somebody else holds for long, or a file system without locks, is no reason to fail: then it does
/// nothing.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};
/// Of all weights, those of inner graphs as well.
std::size_t weight_bytes(const Graph& graph);
/// Whether weights go into a file beside the model unless the user says otherwise.
bool keeps_weights_outside(const Model& model);
std::filesystem::path directory_of(const std::filesystem::path& file);

}  // namespace modelflow
