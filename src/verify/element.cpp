// Numbers stored as elements of any type.
#include "src/verify/element.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "modelflow/error.h"

namespace modelflow {
namespace {

template <class T>
void put(std::byte* out, std::int64_t i, T value) {
  std::memcpy(out + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

std::uint16_t half(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + 15;
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (exponent <= 0) return sign;
  if (exponent >= 31) return static_cast<std::uint16_t>(sign | 0x7bff);
  return static_cast<std::uint16_t>(sign | exponent << 10 | (bits >> 13 & 0x3ff));
}

std::uint16_t bfloat(double value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

void put_bits(std::byte* out, std::int64_t i, int width, unsigned code) {
  const auto bit = static_cast<std::size_t>(i) * static_cast<std::size_t>(width);
  const auto mask = ((1U << width) - 1) << bit % 8;
  out[bit / 8] = (out[bit / 8] & static_cast<std::byte>(~mask)) | static_cast<std::byte>(code << bit % 8);
}

/// The numbers of a type of at most eight bits with the codes that mean them, and the code of what is none.
struct Codes {
  std::map<double, unsigned> numbers = {};
  unsigned nan = 0;

  explicit Codes(DType dtype) {
    const int width = bits(dtype);
    const Tensor all = Tensor::make(dtype, {std::int64_t{1} << width}, [&](std::byte* out) {
      for (unsigned code = 0; code < 1U << width; ++code) put_bits(out, code, width, code);
    });
    unsigned code = 0;
    for (const double number : all.to_doubles()) {
      if (std::isnan(number))
        nan = code;
      else
        numbers.emplace(number, code);  // 0 before -0
      ++code;
    }
  }

  unsigned nearest(double value) const {
    if (std::isnan(value)) return nan;
    const auto above = numbers.lower_bound(value);
    if (above == numbers.begin()) return above->second;
    const auto below = std::prev(above);
    return above == numbers.end() || value - below->first < above->first - value ? below->second : above->second;
  }
};

/// Of every type that is told by its codes, made once.
const Codes& codes_of(DType dtype) {
  static const std::map<DType, Codes> all = [] {
    std::map<DType, Codes> made;
    for (const DType one : {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
                            DType::f4e2m1, DType::u4, DType::i4, DType::u2, DType::i2})
      made.emplace(one, one);
    return made;
  }();
  const auto found = all.find(dtype);
  if (found == all.end())
    throw Error(ErrorKind::unsupported, "no data can be made up of the type " + std::string(name(dtype)));
  return found->second;
}

}  // namespace

bool holds_fractions(DType dtype) { return is_float(dtype) || name(dtype).starts_with("float"); }

void store_element(DType dtype, std::byte* out, std::int64_t i, double value) {
  switch (dtype) {
    case DType::f32:
      return put(out, i, static_cast<float>(value));
    case DType::f64:
      return put(out, i, value);
    case DType::f16:
      return put(out, i, half(value));
    case DType::bf16:
      return put(out, i, bfloat(value));
    case DType::i64:
    case DType::u64:
      return put(out, i, static_cast<std::int64_t>(value));
    case DType::i32:
    case DType::u32:
      return put(out, i, static_cast<std::int32_t>(value));
    case DType::i16:
    case DType::u16:
      return put(out, i, static_cast<std::int16_t>(value));
    case DType::i8:
    case DType::u8:
      return put(out, i, static_cast<std::uint8_t>(static_cast<int>(value)));
    case DType::boolean:
      return put(out, i, static_cast<std::uint8_t>(value != 0));
    case DType::c64:
      put(out, 2 * i, static_cast<float>(value));
      return put(out, 2 * i + 1, static_cast<float>(-value));
    case DType::c128:
      put(out, 2 * i, value);
      return put(out, 2 * i + 1, -value);
    default:
      return put_bits(out, i, bits(dtype), codes_of(dtype).nearest(holds_fractions(dtype) ? value : std::trunc(value)));
  }
}

}  // namespace modelflow
