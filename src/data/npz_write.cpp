// numpy's .npz, written: one .npy for each array, stored as it is.
#include <fmt/format.h>
#include <zlib.h>

#include <cstring>

#include "modelflow/data.h"
#include "modelflow/error.h"
#include "modelflow/new_file.h"

namespace modelflow {
namespace {

constexpr std::uint64_t kMostBytes = 0xfffffffe;  // of an archive without the 64-bit extension

std::string descr_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "<f4";
    case DType::f64:
      return "<f8";
    case DType::f16:
      return "<f2";
    case DType::i64:
      return "<i8";
    case DType::i32:
      return "<i4";
    case DType::i16:
      return "<i2";
    case DType::i8:
      return "|i1";
    case DType::u64:
      return "<u8";
    case DType::u32:
      return "<u4";
    case DType::u16:
      return "<u2";
    case DType::u8:
      return "|u1";
    case DType::boolean:
      return "|b1";
    case DType::c64:
      return "<c8";
    case DType::c128:
      return "<c16";
    default:
      throw Error(ErrorKind::unsupported, fmt::format("numpy has no type {}", name(dtype)));
  }
}

std::string npy(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t dim : tensor.dims()) shape += std::to_string(dim) + ",";
  std::string header =
      "{'descr': '" + descr_of(tensor.dtype()) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (tensor.bytes() > 0) bytes.append(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  return bytes;
}

void put(std::string& out, std::uint64_t value, unsigned width) {
  for (unsigned i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
}

/// What the local header and the directory say alike.
void put_facts(std::string& out, const std::string& content, const std::string& name) {
  put(out, 20, 2);          // version of the format
  put(out, 0, 2);           // flags
  put(out, 0, 2);           // stored
  put(out, 0x00210000, 4);  // 1980-01-01, 0:00: the same bytes for the same arrays
  const auto* data = reinterpret_cast<const Bytef*>(content.data());
  put(out, crc32_z(crc32_z(0, nullptr, 0), data, content.size()), 4);
  put(out, content.size(), 4);
  put(out, content.size(), 4);
  put(out, name.size(), 2);
  put(out, 0, 2);  // extra
}

}  // namespace

void write_feeds(const std::filesystem::path& file, const Feeds& feeds) {
  std::string archive, directory;
  for (const auto& [input, tensor] : feeds) {
    const std::string name = input + ".npy", content = npy(tensor);
    const std::uint64_t offset = archive.size();
    put(archive, 0x04034b50, 4);
    put_facts(archive, content, name);
    archive += name + content;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);  // made by
    put_facts(directory, content, name);
    put(directory, 0, 2);  // comment
    put(directory, 0, 2);  // disk
    put(directory, 0, 2);  // attributes
    put(directory, 0, 4);
    put(directory, offset, 4);
    directory += name;
    if (archive.size() + directory.size() > kMostBytes)
      throw Error(ErrorKind::unsupported, "more than 4 GiB of arrays");
  }
  const std::uint64_t begin = archive.size();
  archive += directory;
  put(archive, 0x06054b50, 4);
  put(archive, 0, 4);  // disks
  put(archive, feeds.size(), 2);
  put(archive, feeds.size(), 2);
  put(archive, directory.size(), 4);
  put(archive, begin, 4);
  put(archive, 0, 2);
  NewFile out(file);
  out.write(archive.data(), archive.size(), 0);
  out.replace();
}

}  // namespace modelflow
