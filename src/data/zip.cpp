// Zip archives through minizip, whose sizes are not believed.
#include "src/data/zip.h"

#include <minizip/unzip.h>
#include <unistd.h>

#include <algorithm>

#include "modelflow/error.h"

namespace modelflow {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30, kMostAtOnce = 1 << 30;
constexpr std::uint64_t kMostInflated = 1032;  // bytes that deflate makes of one, at most
constexpr uLong kEncrypted = 1;

[[noreturn]] void bad(const char* message) { throw Error(ErrorKind::invalid_input, message); }

/// Of a regular file: opening a pipe would wait for its other end.
std::uint64_t size_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto kind = std::filesystem::status(file, error).type();
  if (kind == std::filesystem::file_type::not_found) bad("does not exist");
  if (kind != std::filesystem::file_type::regular) bad("is not a file");
  const std::uint64_t size = std::filesystem::file_size(file, error);
  if (error || ::access(file.c_str(), R_OK) != 0) bad("cannot be read");
  return size;
}

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& file) : archive_(nullptr, unzClose) {
  const std::uint64_t size = size_of(file);
  archive_.reset(unzOpen64(file.c_str()));
  if (!archive_) bad("is no zip archive, or holds no arrays");  // an empty one is the same to minizip
  unz_global_info64 all;
  if (unzGetGlobalInfo64(archive_.get(), &all) != UNZ_OK) bad("damaged archive");
  std::uint64_t packed = 0;
  for (std::uint64_t i = 0; i < all.number_entry; ++i) {
    if ((i == 0 ? unzGoToFirstFile(archive_.get()) : unzGoToNextFile(archive_.get())) != UNZ_OK) bad("damaged archive");
    members_.push_back(current());
    packed += std::min(members_.back().packed_bytes, size + 1);
    if (packed > size) bad("damaged archive");  // members that share bytes could unpack to anything
  }
}

ZipArchive::Member ZipArchive::current() const {
  unz_file_info64 info;
  unz64_file_pos place;
  const auto ask = [&](char* name, uLong size) {
    if (unzGetCurrentFileInfo64(archive_.get(), &info, name, size, nullptr, 0, nullptr, 0) != UNZ_OK)
      bad("damaged archive");
  };
  ask(nullptr, 0);
  std::string name(info.size_filename, '\0');
  ask(name.data(), info.size_filename);
  if ((info.flag & kEncrypted) != 0) bad("encrypted archive");
  if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) bad("neither stored nor deflated");
  // A size beyond what can be is no size to allocate.
  const std::uint64_t most = info.compression_method == 0 ? 1 : kMostInflated;
  if (info.uncompressed_size / most > info.compressed_size) bad("damaged archive");
  if (unzGetFilePos64(archive_.get(), &place) != UNZ_OK) bad("damaged archive");
  return {std::move(name), info.compressed_size, info.uncompressed_size, place.pos_in_zip_directory, place.num_of_file};
}

std::string ZipArchive::read(const Member& member) const {
  if (member.bytes > kMostBytes) bad("larger than 4 GiB");
  const unz64_file_pos place{member.place, member.index};
  if (unzGoToFilePos64(archive_.get(), &place) != UNZ_OK || unzOpenCurrentFile(archive_.get()) != UNZ_OK)
    bad("damaged archive");
  std::string content(member.bytes, '\0');
  std::uint64_t done = 0;
  for (int got = 1; got > 0 && done < content.size(); done += static_cast<std::uint64_t>(std::max(got, 0)))
    got = unzReadCurrentFile(archive_.get(), content.data() + done,
                             static_cast<unsigned>(std::min(content.size() - done, kMostAtOnce)));
  char more = 0;
  const bool whole = done == content.size() && unzReadCurrentFile(archive_.get(), &more, 1) == 0;
  if (const int closed = unzCloseCurrentFile(archive_.get()); closed != UNZ_OK || !whole)
    bad(closed == UNZ_CRCERROR ? "wrong checksum" : "damaged archive");
  return content;
}

}  // namespace modelflow
