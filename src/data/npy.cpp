// Arrays in numpy's .npy format read.
#include "src/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "modelflow/error.h"

namespace modelflow {
namespace {

constexpr std::size_t kMostDims = 64;        // numpy's own limit
constexpr std::uint32_t kMostHeader = 4096;  // numpy writes about 100

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

Dims dims_of_header(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  Dims dims;
  for (std::size_t at = text.find_first_of(kDigits); at < text.size(); at = text.find_first_of(kDigits, at)) {
    std::int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), dim);
    if (error != std::errc{}) bad("dims beyond all memory");
    dims.push_back(dim);
    if (dims.size() > kMostDims) bad("more axes than any array has");
    at = static_cast<std::size_t>(end - text.data());
  }
  return dims;
}

// What stands between `open` and `close` behind a key of the header.
std::string_view entry(std::string_view header, std::string_view key, char open, char close) {
  const std::size_t at = header.find(key);
  const std::size_t begin = at == header.npos ? at : header.find_first_not_of(' ', at + key.size());
  const std::size_t end = begin == header.npos ? begin : header.find(close, begin + 1);
  if (end == header.npos || header[begin] != open)
    bad("unreadable .npy header (object and structured arrays are not supported)");
  return header.substr(begin + 1, end - begin - 1);
}

}  // namespace

// Magic, version, header length, a Python dict literal, then the data (numpy.lib.format).
Tensor parse_npy(std::string_view bytes) {
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0) bad("not in .npy format");
  std::uint32_t length = 0;
  const bool wide = bytes[6] >= 2;
  std::memcpy(&length, bytes.data() + 8, wide ? 4 : 2);
  const std::size_t start = (wide ? 12 : 10) + std::size_t{length};
  if (length > kMostHeader) bad("unreadable .npy header");
  if (start > bytes.size()) bad("truncated .npy header");
  const std::string_view header = bytes.substr(wide ? 12 : 10, length);
  const std::string_view descr = entry(header, "'descr':", '\'', '\''), shape = entry(header, "'shape':", '(', ')');
  if (header.find("'fortran_order': True") != std::string::npos)
    bad("Fortran order is not supported: save np.ascontiguousarray");
  const DType dtype = dtype_of_descr(std::string(descr));
  Dims dims = dims_of_header(shape);
  const std::size_t size = byte_count(dtype, dims);
  if (bytes.size() - start < size) bad("truncated .npy data");
  return Tensor::make(dtype, std::move(dims), [&](std::byte* out) {
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + start, size, out);
  });
}

}  // namespace modelflow
