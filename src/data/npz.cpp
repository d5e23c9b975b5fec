// Inputs from numpy's archives, one or a directory of them.
#include <algorithm>

#include "modelflow/data.h"
#include "src/data/npy.h"
#include "src/data/zip.h"

namespace modelflow {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void bad(const fs::path& path, std::string_view message) {
  throw Error(ErrorKind::invalid_input, message).within("'" + path.string() + "'");
}

Feeds read_npz(const fs::path& path) {
  Feeds feeds;
  std::string name;
  try {
    const ZipArchive archive(path);
    for (const ZipArchive::Member& member : archive.members()) {
      name = member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name;
      feeds[name] = parse_npy(archive.read(member));
    }
  } catch (const Error& error) {
    throw(name.empty() ? error : error.within("member '" + name + "'")).within("'" + path.string() + "'");
  }
  if (feeds.empty()) bad(path, "holds no arrays");
  return feeds;
}

/// `path` itself, or the archives in it in name order.
std::vector<fs::path> archives(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) bad(path, "does not exist");
  if (!fs::is_directory(status)) return {path};
  std::vector<fs::path> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".npz") files.push_back(it->path());
  if (error) bad(path, error.message());
  std::sort(files.begin(), files.end());
  if (files.empty()) bad(path, "holds no .npz files");
  return files;
}

}  // namespace

std::vector<Feeds> read_feeds(const fs::path& path) {
  std::vector<Feeds> sets;
  for (const fs::path& file : archives(path)) sets.push_back(read_npz(file));
  return sets;
}

CalibrationData read_one_by_one(const fs::path& path) {
  return [files = archives(path)](std::size_t index) -> std::optional<Feeds> {
    if (index >= files.size()) return std::nullopt;
    return read_npz(files[index]);
  };
}

}  // namespace modelflow
