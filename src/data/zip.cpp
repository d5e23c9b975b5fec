#include "src/data/zip.h"

#include <zlib.h>

#include <algorithm>
#include <fstream>

#include "modelflow/error.h"

namespace modelflow {
namespace {

// APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.14 to 4.3.16.
constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::uint64_t kEndBytes = 22, kMostComment = 65535, kWide = 0xFFFFFFFF;
constexpr unsigned kStored = 0, kDeflated = 8;
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;

[[noreturn]] void bad(const char* message) { throw Error(ErrorKind::invalid_input, message); }

}  // namespace

std::uint64_t ZipArchive::number(std::uint64_t at, unsigned width) const {
  if (at > bytes_.size() || bytes_.size() - at < width) bad("truncated archive");
  std::uint64_t value = 0;
  for (unsigned i = 0; i < width; ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[at + i])) << (8 * i);
  return value;
}

void ZipArchive::expect(std::uint64_t at, std::uint32_t signature) const {
  if (number(at, 4) != signature) bad("damaged archive");
}

std::uint64_t ZipArchive::end_record() const {
  if (bytes_.size() < kEndBytes) bad("not a zip archive");
  const std::uint64_t last = bytes_.size() - kEndBytes;
  for (std::uint64_t back = 0; back <= std::min(last, kMostComment); ++back)
    if (number(last - back, 4) == kEnd) return last - back;
  bad("not a zip archive");
}

ZipArchive::ZipArchive(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto kind = std::filesystem::status(file, ignored).type();
  if (kind == std::filesystem::file_type::not_found) bad("does not exist");
  if (kind != std::filesystem::file_type::regular) bad("is not a file");  // a pipe would wait for its other end
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) bad("cannot be read");
  bytes_.resize(static_cast<std::size_t>(in.tellg()));
  if (!in.seekg(0).read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()))) bad("cannot be read");
  const std::uint64_t end = end_record();
  std::uint64_t count = number(end + 10, 2), at = number(end + 16, 4);
  if ((count == 0xFFFF || at == kWide) && end >= 20 && number(end - 20, 4) == kLocator64) {
    const std::uint64_t end64 = number(end - 20 + 8, 8);
    expect(end64, kEnd64);
    count = number(end64 + 32, 8);
    at = number(end64 + 48, 8);
  }
  std::uint64_t packed = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    members_.push_back(member_at(at));
    packed += std::min<std::uint64_t>(members_.back().packed_bytes, bytes_.size() + 1);
    if (packed > bytes_.size()) bad("damaged archive");  // members that share bytes could unpack to anything
    at += 46 + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
  }
}

ZipArchive::Member ZipArchive::member_at(std::uint64_t at) const {
  expect(at, kCentral);
  const std::uint64_t name_bytes = number(at + 28, 2), extra = at + 46 + name_bytes;
  if (extra > bytes_.size()) bad("truncated archive");
  Member member{.name = bytes_.substr(at + 46, name_bytes),
                .offset = number(at + 42, 4),
                .packed_bytes = number(at + 20, 4),
                .bytes = number(at + 24, 4),
                .checksum = static_cast<std::uint32_t>(number(at + 16, 4)),
                .method = static_cast<unsigned>(number(at + 10, 2))};
  if ((number(at + 8, 2) & 1) != 0) bad("encrypted archive");
  widen(member, extra, extra + number(at + 30, 2));
  return member;
}

/// The zip64 field holds, in this order, what does not fit into 32 bits.
void ZipArchive::widen(Member& member, std::uint64_t extra, std::uint64_t end) const {
  while (extra + 4 <= end) {
    const std::uint64_t id = number(extra, 2), size = number(extra + 2, 2);
    std::uint64_t field = extra + 4;
    if (id == 1)
      for (std::uint64_t* value : {&member.bytes, &member.packed_bytes, &member.offset})
        if (*value == kWide && field + 8 <= extra + 4 + size) {
          *value = number(field, 8);
          field += 8;
        }
    extra += 4 + size;
  }
}

std::string ZipArchive::read(const Member& member) const {
  expect(member.offset, kLocal);
  const std::uint64_t data = member.offset + 30 + number(member.offset + 26, 2) + number(member.offset + 28, 2);
  if (data > bytes_.size() || bytes_.size() - data < member.packed_bytes) bad("truncated archive");
  if (member.bytes > kMostBytes) bad("larger than 4 GiB");
  std::string content;
  if (member.method == kStored && member.bytes == member.packed_bytes)
    content = bytes_.substr(data, member.bytes);
  else if (member.method == kDeflated)
    content = inflated(member, data);
  else
    bad("neither stored nor deflated");
  const auto* begin = reinterpret_cast<const Bytef*>(content.data());
  if (crc32_z(crc32_z(0, nullptr, 0), begin, content.size()) != member.checksum) bad("wrong checksum");
  return content;
}

std::string ZipArchive::inflated(const Member& member, std::uint64_t data) const {
  // A deflated byte makes no more than 1032 others: a size beyond that is no size to allocate.
  if (member.bytes / 1032 > member.packed_bytes || member.packed_bytes >= kMostBytes) bad("damaged archive");
  std::string content(member.bytes, '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + data));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(member.packed_bytes);
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = static_cast<uInt>(std::min<std::uint64_t>(content.size(), kMostBytes - 1));
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) bad("cannot unpack");
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = stream.total_out == member.bytes;
  inflateEnd(&stream);
  if (result != Z_STREAM_END || !whole) bad("damaged archive");
  return content;
}

}  // namespace modelflow
