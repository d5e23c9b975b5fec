#include "inputs.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <regex>

namespace modelflow::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void bad(std::string_view message) { throw Error(ErrorKind::invalid_input, message); }

DType dtype_of_descr(const std::string& descr) {
  static const std::map<std::string, DType> known = {
      {"f4", DType::f32}, {"f8", DType::f64},     {"f2", DType::f16}, {"i8", DType::i64},  {"i4", DType::i32},
      {"i2", DType::i16}, {"i1", DType::i8},      {"u1", DType::u8},  {"u2", DType::u16},  {"u4", DType::u32},
      {"u8", DType::u64}, {"b1", DType::boolean}, {"c8", DType::c64}, {"c16", DType::c128}};
  if (descr.size() < 2 || descr[0] == '>') bad(fmt::format("dtype '{}' is not little-endian", descr));
  auto it = known.find(descr.substr(1));
  if (it == known.end()) bad(fmt::format("dtype '{}' is not supported", descr));
  return it->second;
}

Dims dims_of_header(const std::string& text) {
  Dims dims;
  static const std::regex number("[0-9]+");
  for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it)
    dims.push_back(std::stoll(it->str()));
  return dims;
}

// The .npy format: magic, version, header length, a Python dict literal, then the data (numpy.lib.format).
Tensor parse_npy(const std::string& bytes) {
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0) bad("not in .npy format");
  std::uint32_t length = 0;
  const bool wide = bytes[6] >= 2;
  std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
  const std::size_t start = (wide ? 12 : 10) + std::size_t{length};
  if (start > bytes.size()) bad("truncated .npy header");
  const std::string header = bytes.substr(wide ? 12 : 10, length);
  std::smatch descr, shape;
  if (!std::regex_search(header, descr, std::regex("'descr': *'([^']*)'")) ||
      !std::regex_search(header, shape, std::regex("'shape': *\\(([^)]*)\\)")))
    bad("unreadable .npy header (object and structured arrays are not supported)");
  if (header.find("'fortran_order': True") != std::string::npos)
    bad("Fortran order is not supported: save np.ascontiguousarray");
  const DType dtype = dtype_of_descr(descr[1]);
  Dims dims = dims_of_header(shape[1]);
  const std::size_t size = byte_count(dtype, dims);
  if (bytes.size() - start < size) bad("truncated .npy data");
  return Tensor::make(dtype, std::move(dims), [&](std::byte* out) { std::memcpy(out, bytes.data() + start, size); });
}

std::string read_member(zip_t* archive, zip_int64_t index, const zip_stat_t& stat) {
  constexpr zip_uint64_t kMost = zip_uint64_t{4} << 30;
  if (stat.size > kMost) bad("larger than 4 GiB");
  std::string bytes(stat.size, '\0');
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(archive, index, 0), zip_fclose);
  if (!file || zip_fread(file.get(), bytes.data(), bytes.size()) != static_cast<zip_int64_t>(bytes.size()))
    bad("unreadable member");
  return bytes;
}

Feeds read_npz(const fs::path& path) {
  int code = 0;
  std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open(path.c_str(), ZIP_RDONLY, &code), zip_discard);
  if (!archive) bad(fmt::format("'{}' is not a readable .npz archive", path.string()));
  Feeds feeds;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), i, 0, &stat) != 0) bad(fmt::format("'{}': damaged archive", path.string()));
    std::string name = stat.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    try {
      feeds[name] = parse_npy(read_member(archive.get(), i, stat));
    } catch (const Error& error) {
      throw error.within(fmt::format("'{}' member '{}'", path.string(), name));
    }
  }
  if (feeds.empty()) bad(fmt::format("'{}' holds no arrays", path.string()));
  return feeds;
}

/// `path` itself, or the archives in it in name order.
std::vector<fs::path> archives(const fs::path& path) {
  if (!fs::exists(path)) bad(fmt::format("'{}' does not exist", path.string()));
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".npz") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) bad(fmt::format("'{}' holds no .npz files", path.string()));
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

}  // namespace modelflow::tools
