#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace modelflow {

/// A file that becomes visible only when it is complete: written under a temporary name in the same directory, synced,
/// renamed. Whatever goes wrong before, the temporary file is removed. Every failure is Error(output).
class NewFile {
 public:
  /// The temporary file is made beside `target`; a `target` that exists keeps its permissions.
  explicit NewFile(const std::filesystem::path& target);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return fd_; }
  void write(const void* data, std::size_t size, std::size_t offset);
  /// Syncs and takes the target's name, replacing what was there.
  void replace();
  struct Settled {
    std::filesystem::path path;
    bool fresh;  ///< false: a file with this content was there already
  };
  /// Syncs and takes the first of target, target.1, target.2, ... that is free or already has this content.
  Settled settle();

 private:
  void sync();
  [[noreturn]] void fail(const std::string& what) const;
  std::filesystem::path target_, temporary_;
  int fd_ = -1;
};

/// Throws Error(output) when `bytes` in one file, or `total` bytes together, cannot be written beside `target`.
void check_room(const std::filesystem::path& target, std::size_t bytes, std::size_t total);
/// Makes a rename in this directory durable.
void sync_directory(const std::filesystem::path& directory);
std::filesystem::path directory_of(const std::filesystem::path& file);

}  // namespace modelflow
