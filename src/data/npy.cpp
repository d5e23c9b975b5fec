// Arrays in numpy's .npy format read.
#include "src/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <string>
#include <vector>

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
  auto it = known.find(descr.substr(1));
  if (it == known.end()) bad(fmt::format("dtype '{}' is not supported", descr));
  return it->second;
}

/// UTF-8 of a code point.
void append(std::string& text, std::uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) bad("a text that is no Unicode");
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

/// Behind the zeros that fill it up it is at its end.
std::string text_of(std::string_view bytes, bool wide) {
  if (!wide) return std::string(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
  std::u32string codes(bytes.size() / 4, 0);
  std::memcpy(codes.data(), bytes.data(), bytes.size());
  codes.resize(codes.find_last_not_of(U'\0') + 1);
  std::string text;
  for (const char32_t code : codes) append(text, code);
  return text;
}

/// Texts of one width: "<U12" is twelve code points of four bytes, "|S12" twelve bytes.
Tensor texts(const std::string& descr, Dims dims, std::string_view data) {
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), width);
  if (error != std::errc{} || *end != 0 || width == 0) bad(fmt::format("dtype '{}' is not supported", descr));
  const auto count = static_cast<std::size_t>(element_count(dims));
  const bool wide = descr[1] == 'U';
  const std::size_t most = data.size() / (wide ? 4 : 1);
  if (count > 0 && (width > most || count > most / width)) bad("truncated .npy data");
  const std::size_t size = count > 0 ? width * (wide ? 4 : 1) : 0;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(text_of(data.substr(i * size, size), wide));
  return Tensor(std::move(dims), std::move(all));
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
  const std::string descr(entry(header, "'descr':", '\'', '\''));
  const std::string_view shape = entry(header, "'shape':", '(', ')');
  if (header.find("'fortran_order': True") != std::string::npos)
    bad("Fortran order is not supported: save np.ascontiguousarray");
  if (descr.size() < 2 || descr[0] == '>') bad(fmt::format("dtype '{}' is not little-endian", descr));
  Dims dims = dims_of_header(shape);
  if (descr[1] == 'U' || descr[1] == 'S') return texts(descr, std::move(dims), bytes.substr(start));
  const DType dtype = dtype_of_descr(descr);
  const std::size_t size = byte_count(dtype, dims);
  if (bytes.size() - start < size) bad("truncated .npy data");
  return Tensor::make(dtype, std::move(dims), [&](std::byte* out) {
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + start, size, out);
  });
}

}  // namespace modelflow
