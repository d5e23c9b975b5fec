// numpy's .npz, written: one .npy for each array, stored as it is.
#include <fmt/format.h>
#include <minizip/zip.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "modelflow/data.h"
#include "modelflow/error.h"
#include "src/core/new_file.h"

namespace modelflow {
namespace {

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

std::string npy_header(const Tensor& tensor) {
  std::string shape;
  for (const std::int64_t dim : tensor.dims()) shape += std::to_string(dim) + ",";
  std::string header =
      "{'descr': '" + descr_of(tensor.dtype()) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

/// An archive that becomes visible when it is complete.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& file)
      : name_(file.string()), file_(file), descriptor_(file_.descriptor()) {
    zlib_filefunc64_def files;
    fill_fopen64_filefunc(&files);
    files.zopen64_file = [](void* own, const void*, int) -> void* {
      return ::fdopen(::dup(*static_cast<int*>(own)), "wb");
    };
    files.opaque = &descriptor_;
    zip_ = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &files);
    expect(zip_ != nullptr);
  }
  ~ZipWriter() {
    if (zip_) zipClose(zip_, nullptr);
  }
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  void begin(const std::string& name) {
    zip_fileinfo info{};
    info.dosDate = 0x00210000;  // 1980-01-01, 0:00: the same bytes for the same arrays
    expect(zipOpenNewFileInZip64(zip_, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, 0, 0, 1) == ZIP_OK);
  }
  void write(const void* data, std::size_t size) {
    constexpr std::size_t kMostAtOnce = 1 << 30;
    for (std::size_t done = 0; done < size; done += kMostAtOnce)
      expect(zipWriteInFileInZip(zip_, static_cast<const char*>(data) + done,
                                 static_cast<unsigned>(std::min(size - done, kMostAtOnce))) == ZIP_OK);
  }
  void finish() {
    expect(zipClose(std::exchange(zip_, nullptr), nullptr) == ZIP_OK);
    file_.replace();
  }

 private:
  void expect(bool done) const {
    if (!done) throw Error(ErrorKind::output, "'" + name_ + "' cannot be written: " + std::strerror(errno));
  }

  std::string name_;
  NewFile file_;
  int descriptor_;
  zipFile zip_ = nullptr;
};

}  // namespace

void write_feeds(const std::filesystem::path& file, const Feeds& feeds) {
  ZipWriter zip(file);
  for (const auto& [input, tensor] : feeds) {
    const std::string header = npy_header(tensor);
    zip.begin(input + ".npy");
    zip.write(header.data(), header.size());
    zip.write(tensor.data(), tensor.bytes());
  }
  zip.finish();
}

}  // namespace modelflow
