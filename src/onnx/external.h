// External data of a model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace modelflow {

/// A file mapped read-only; the mapping outlives renames and unlinks of the file.
class MappedFile {
 public:
  /// Maps the open file `fd` (and closes it). Throws Error(invalid_input).
  static std::shared_ptr<const MappedFile> map(int fd, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  const std::byte* data_;
  std::size_t size_;
};

/// The data files beside one model. A location is accepted only if it is relative, has no ".." and its real path lies
/// in the model's directory, or in the directory of the model's real path (as in Hugging Face caches, where both are
/// links into one folder); hard links, devices and pipes are refused.
class ExternalFiles {
 public:
  /// `directory` empty: no external data is allowed (a model from bytes).
  explicit ExternalFiles(std::filesystem::path directory, const std::filesystem::path& model_file = {});
  /// `length` bytes at `offset` Throws Error(invalid_input) naming the location.
  std::shared_ptr<const std::byte> bytes(const std::string& location, std::size_t offset, std::size_t length);
  /// The size of the file.
  std::size_t size(const std::string& location) { return open(location)->size(); }
  /// The real path. Throws Error(invalid_input) where nothing may be read.
  std::filesystem::path find(const std::string& location) const;
  /// The file, mapped. Throws as find() does.
  std::shared_ptr<const MappedFile> open(const std::string& location);
  /// Whether anything was read from one.
  bool used() const { return !files_.empty(); }

 private:
  bool inside(const std::filesystem::path& real) const;

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> roots_;  // real paths
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace modelflow
