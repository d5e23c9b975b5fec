#include "src/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <regex>

#include "modelflow/error.h"

namespace modelflow {
namespace {

constexpr std::size_t kMostDims = 64;        // numpy's own limit
constexpr std::uint32_t kMostHeader = 4096;  // numpy writes about 100; std::regex needs stack for every character

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
  for (std::sregex_iterator it(text.begin(), text.end(), number), end; it != end; ++it) {
    if (it->length() > 18) bad("dims beyond all memory");
    dims.push_back(std::stoll(it->str()));
    if (dims.size() > kMostDims) bad("more axes than any array has");
  }
  return dims;
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
  const std::string header(bytes.substr(wide ? 12 : 10, length));
  static const std::regex descr_entry("'descr': *'([^']*)'"), shape_entry("'shape': *\\(([^)]*)\\)");
  std::smatch descr, shape;
  if (!std::regex_search(header, descr, descr_entry) || !std::regex_search(header, shape, shape_entry))
    bad("unreadable .npy header (object and structured arrays are not supported)");
  if (header.find("'fortran_order': True") != std::string::npos)
    bad("Fortran order is not supported: save np.ascontiguousarray");
  const DType dtype = dtype_of_descr(descr[1]);
  Dims dims = dims_of_header(shape[1]);
  const std::size_t size = byte_count(dtype, dims);
  if (bytes.size() - start < size) bad("truncated .npy data");
  return Tensor::make(dtype, std::move(dims), [&](std::byte* out) {
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + start, size, out);
  });
}

}  // namespace modelflow
