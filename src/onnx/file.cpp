// New files: written under no name or a temporary one, synced, renamed.
#include "src/onnx/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "modelflow/error.h"
#include "src/core/new_file.h"
#include "src/onnx/external.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kSuffix = 12;  // letters in a temporary name

std::string system_message() { return std::strerror(errno); }

// What a process that was killed left behind: temporary files of this target that nobody holds a lock on. The age keeps
// clear of a process that has just made one and not locked it yet.
void sweep(const fs::path& target) {
  constexpr auto kAge = std::chrono::minutes(1);
  std::string stem = "." + target.filename().string() + ".";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_of(target), error)) {
    std::string name = entry.path().filename().string();
    bool ours = name.size() == stem.size() + kSuffix + 4 && name.starts_with(stem) && name.ends_with(".tmp");
    if (!ours || !fs::is_regular_file(entry.symlink_status(error))) continue;
    if (fs::file_time_type::clock::now() - entry.last_write_time(error) < kAge) continue;
    int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(fd);
  }
}

// A leading dot and a name nobody else picks.
fs::path temporary_name(const fs::path& target) {
  static constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string suffix;
  for (std::size_t i = 0; i < kSuffix; ++i) suffix += kDigits[random() % 36];
  return directory_of(target) / ("." + target.filename().string() + "." + suffix + ".tmp");
}

bool same_content(const fs::path& path, int fd) {
  int other = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (other < 0) return false;
  struct stat info {};
  if (::fstat(other, &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1) {
    ::close(other);
    return false;
  }
  auto old = MappedFile::map(other, path.string());
  auto fresh = MappedFile::map(::dup(fd), path.string());
  return old->size() == fresh->size() && std::memcmp(old->data(), fresh->data(), old->size()) == 0;
}

// rename() that does not replace; false when the name is taken.
bool moved(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS) throw Error(ErrorKind::output, "'" + to.string() + "': " + system_message());
  // A file system without the flag: the name is reserved first.
  int fd = ::open(to.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  ::close(fd);
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  throw Error(ErrorKind::output, "'" + to.string() + "': " + system_message());
}

}  // namespace

fs::path directory_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

NewFile::NewFile(const fs::path& target) : target_(target) {
  std::error_code error;
  fs::file_status status = fs::status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw Error(ErrorKind::output, "'" + target.string() + "' exists and is not a regular file");
  }
  struct stat info {};
  if (::lstat(temporary_name(target_).c_str(), &info) != 0 && errno == ENAMETOOLONG) fail("cannot be created");
  open();
  sweep(target_);
  if (::stat(target_.c_str(), &info) == 0) (void)!::fchmod(fd_, info.st_mode & 07777);
}

// A file without a name goes with its process, however that ends; it gets its name through /proc.
void NewFile::open() {
  if (::access("/proc/self/fd", X_OK) == 0)
    fd_ = ::open(directory_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd_ >= 0) return;
  fs::path name = temporary_name(target_);
  fd_ = ::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot be created");
  temporary_ = std::move(name);
  (void)!::flock(fd_, LOCK_EX | LOCK_NB);
}

// Takes a name that is free; false when it is not.
bool NewFile::claim(const fs::path& name) {
  if (!temporary_.empty()) return moved(temporary_, name);
  const std::string own = "/proc/self/fd/" + std::to_string(fd_);
  if (::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno == EEXIST) return false;
  throw Error(ErrorKind::output, "'" + name.string() + "': " + system_message());
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::fail(const std::string& what) const {
  throw Error(ErrorKind::output, "'" + target_.string() + "' " + what + ": " + system_message());
}

void NewFile::write(const void* data, std::size_t size, std::size_t offset) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t done = ::pwrite(fd_, from, std::min<std::size_t>(size, 1 << 30), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("cannot be written");
    from += done;
    size -= static_cast<std::size_t>(done);
    offset += static_cast<std::size_t>(done);
  }
}

void NewFile::sync() {
  if (::fsync(fd_) != 0 && errno != EINVAL) fail("cannot be written to disk");
}

void NewFile::replace() {
  sync();
  if (temporary_.empty()) {  // rename() replaces, a link does not
    const fs::path name = temporary_name(target_);
    if (!claim(name)) fail("cannot be named");
    temporary_ = name;
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
  temporary_.clear();
  sync_directory(directory_of(target_));
}

NewFile::Settled NewFile::settle() {
  sync();
  fs::path name = target_;
  for (int i = 1; !claim(name); ++i) {
    if (same_content(name, fd_)) return {name, false};
    name = target_.string() + "." + std::to_string(i);
  }
  temporary_.clear();
  sync_directory(directory_of(target_));
  return {name, true};
}

void refuse_unwritable(const fs::path& file) {
  const fs::path target = end_of_links(file), folder = directory_of(target);
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw Error(ErrorKind::output,
                "'" + file.string() + "' cannot be written: there is no folder '" + folder.string() + "'");
  const NewFile nothing(target);
}

void refuse_unwritable_folder(const fs::path& folder) {
  std::error_code error;
  fs::path at = fs::absolute(folder, error);
  while (!fs::exists(at, error) && !error && at.has_relative_path()) at = at.parent_path();
  const bool is_folder = fs::is_directory(at, error);
  if (is_folder && ::faccessat(AT_FDCWD, at.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
  throw Error(ErrorKind::output, "the folder '" + folder.string() + "' cannot be written: '" + at.string() + "' " +
                                     (is_folder ? "is not writable"
                                      : error   ? error.message()
                                                : "is no folder"));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(ErrorKind::output, "cannot make the folder '" + folder.string() + "': " + error.message());
}

FolderLock::FolderLock(const fs::path& folder) : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  constexpr auto kPatience = std::chrono::seconds(30);
  constexpr auto kPause = std::chrono::milliseconds(5);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kPause);
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

void sync_directory(const fs::path& directory) {
  int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);  // some file systems cannot: then the rename is as durable as they make it
  ::close(fd);
}

void check_room(const fs::path& target, std::size_t bytes, std::size_t total) {
  fs::path directory = directory_of(target);
  auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::output, "'" + target.string() + "' cannot be written: " + why);
  };
  struct statvfs disk {};
  if (::statvfs(directory.c_str(), &disk) != 0) refuse("directory '" + directory.string() + "': " + system_message());
  double room = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (disk.f_blocks > 0 && static_cast<double>(total) > room) {
    refuse("it needs " + std::to_string(total) + " bytes, " + std::to_string(static_cast<long long>(room)) +
           " are free on the disk");
  }
  // Beyond this limit a write would end the process with SIGXFSZ.
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
    refuse("it needs " + std::to_string(bytes) + " bytes, the file size limit of this process is " +
           std::to_string(limit.rlim_cur));
  }
}

}  // namespace modelflow
