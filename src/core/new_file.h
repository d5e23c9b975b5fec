// A file that appears only when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace modelflow {

/// Where writing to `file` goes: the end of the symbolic links that start there, so that a link stays one. Throws
/// Error(output) where something is there that is no regular file, or a link of /proc (as in /dev/stdout) leads on.
std::filesystem::path end_of_links(const std::filesystem::path& file);

/// Throws Error(output) where NewFile could not make this file, or where a folder cannot be made or written into: said
/// before the work whose result would go there. Leaves nothing behind.
void refuse_unwritable(const std::filesystem::path& file);
void refuse_unwritable_folder(const std::filesystem::path& folder);

/// And those above it. Throws Error(output).
void make_folder(const std::filesystem::path& folder);

/// A file that becomes visible only when it is complete: written without a name, or under a temporary one where the
/// file system knows no files without names, then synced and renamed. Whatever goes wrong before, nothing of it is
/// left. Every failure is Error(output).
class NewFile {
 public:
  /// The file is made beside `target`, which is no link to follow; a target that exists keeps its permissions.
  explicit NewFile(const std::filesystem::path& target);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return fd_; }
  void write(const void* data, std::size_t size, std::size_t offset);
  /// What was written is on the disk when this returns.
  void sync();
  /// Syncs and takes the target's name, replacing what was there.
  void replace();
  struct Settled {
    std::filesystem::path path;
    bool fresh;  ///< false: a file with this content was there already
  };
  /// Syncs and takes the first of target, target.1, target.2, ... that is free or already has this content.
  Settled settle();

 private:
  void open();
  bool claim(const std::filesystem::path& name);
  [[noreturn]] void fail(const std::string& what) const;
  std::filesystem::path target_, temporary_;  ///< temporary_ empty: without a name
  int fd_ = -1;
};

}  // namespace modelflow
