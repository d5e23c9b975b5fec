// Data files beside a model: which are accepted, and mapped.
#include "src/onnx/external.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "modelflow/error.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const std::string& location, const std::string& why) {
  throw Error(ErrorKind::invalid_input, "external data '" + location + "': " + why);
}

// Relative, inside, and not one of the markers that runtimes use for data that is in memory.
void check_spelling(const std::string& location) {
  if (location.empty()) refuse(location, "the location is empty");
  if (location.find('\0') != std::string::npos) refuse("?", "the location holds a zero byte");
  if (location.find("_ORT_MEM_ADDR_") != std::string::npos) refuse(location, "a memory address is not a file");
  fs::path path(location);
  if (path.is_absolute() || location[0] == '\\' || (location.size() > 1 && location[1] == ':')) {
    refuse(location, "an absolute path is not allowed, the data must lie beside the model");
  }
  std::string slashes = location;
  std::replace(slashes.begin(), slashes.end(), '\\', '/');
  for (const fs::path& part : fs::path(slashes)) {
    if (part == "..") refuse(location, "'..' is not allowed, the data must lie beside the model");
  }
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::map(int fd, const std::string& name) {
  Descriptor file(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::invalid_input, "'" + name + "' is not a regular file");
  }
  auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorKind::invalid_input, "'" + name + "' cannot be mapped: " + std::strerror(errno));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

ExternalFiles::ExternalFiles(fs::path directory, const fs::path& model_file) : directory_(std::move(directory)) {
  std::error_code ignored;
  if (directory_.empty()) return;
  fs::path logical = fs::canonical(directory_, ignored);
  if (!ignored) roots_.push_back(std::move(logical));
  if (model_file.empty()) return;
  fs::path real = fs::canonical(model_file, ignored);
  if (!ignored) roots_.push_back(real.parent_path());
}

bool ExternalFiles::inside(const fs::path& real) const {
  return std::any_of(roots_.begin(), roots_.end(), [&](const fs::path& root) {
    auto [end, rest] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
    return end == root.end() && rest != real.end();
  });
}

fs::path ExternalFiles::find(const std::string& location) const {
  if (directory_.empty()) refuse(location, "a model from bytes has no directory to look in; give one");
  check_spelling(location);
  std::error_code error;
  fs::path real = fs::canonical(directory_ / location, error);
  if (error) refuse(location, "not found in '" + directory_.string() + "'");
  if (!inside(real)) refuse(location, "it leads out of the model's directory, to '" + real.string() + "'");
  return real;
}

std::shared_ptr<const MappedFile> ExternalFiles::open(const std::string& location) {
  if (auto found = files_.find(location); found != files_.end()) return found->second;
  const fs::path real = find(location);
  std::error_code error;
  // O_NONBLOCK: a pipe must not block. The checks on the path are repeated on what was really opened.
  Descriptor fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.get() < 0) refuse(location, std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) refuse(location, "not a regular file");
  if (info.st_nlink > 1) refuse(location, "it is a hard link to a file that may lie elsewhere; copy it");
  fs::path opened = fs::read_symlink("/proc/self/fd/" + std::to_string(fd.get()), error);
  if (!error && !inside(opened)) refuse(location, "it leads out of the model's directory");
  return files_[location] = MappedFile::map(fd.release(), location);
}

std::shared_ptr<const std::byte> ExternalFiles::bytes(const std::string& location, std::size_t offset,
                                                      std::size_t length) {
  const std::shared_ptr<const MappedFile> file = open(location);
  // Written so that nothing wraps.
  if (length > file->size() || offset > file->size() - length) {
    refuse(location, "it has " + std::to_string(file->size()) + " bytes, the model asks for " + std::to_string(length) +
                         " at offset " + std::to_string(offset));
  }
  return {file, file->data() + offset};
}

}  // namespace modelflow
