// Numbers stored as elements of any type.
#include "src/verify/element.h"

#include <bit>
#include <cmath>
#include <cstring>

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

}  // namespace

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
      return;
  }
}

}  // namespace modelflow
