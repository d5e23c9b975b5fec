// Numbers as elements of any type.
#include "tests/fuzz/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace modelflow::fuzz {
namespace {

template <class T>
T whole(double value) {
  if (std::isnan(value)) return 0;
  const double low = static_cast<double>(std::numeric_limits<T>::lowest());
  const double high = static_cast<double>(std::numeric_limits<T>::max());
  if (value >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(std::max(low, std::nearbyint(value)));
}

std::uint16_t half(double value) {
  if (std::isnan(value)) return 0x7e00;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (size >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int shift = std::max(exponent - 11, -24);  // the last digit of 11, or of the subnormal ones
  const double steps = std::nearbyint(std::ldexp(size, -shift));
  // steps * 2^shift, with steps up to 2^11: the exponent field counts from 2^-24.
  const auto count = static_cast<std::uint32_t>(steps);
  if (shift == -24) return static_cast<std::uint16_t>(sign | count);
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(shift + 24) << 10) + count));
}

template <class T>
void put(std::byte* out, std::size_t i, T value) {
  std::memcpy(out + i * sizeof(T), &value, sizeof(T));
}

}  // namespace

Tensor tensor_of(DType dtype, const Dims& dims, const std::vector<double>& values) {
  return Tensor::make(dtype, dims, [&](std::byte* out) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double v = values[i];
      switch (dtype) {
        case DType::f32:
          put(out, i, static_cast<float>(v));
          break;
        case DType::f64:
          put(out, i, v);
          break;
        case DType::f16:
          put(out, i, half(v));
          break;
        case DType::bf16:
          put(out, i, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(v)) >> 16));
          break;
        case DType::i64:
          put(out, i, whole<std::int64_t>(v));
          break;
        case DType::i32:
          put(out, i, whole<std::int32_t>(v));
          break;
        case DType::i16:
          put(out, i, whole<std::int16_t>(v));
          break;
        case DType::i8:
          put(out, i, whole<std::int8_t>(v));
          break;
        case DType::u64:
          put(out, i, whole<std::uint64_t>(v));
          break;
        case DType::u32:
          put(out, i, whole<std::uint32_t>(v));
          break;
        case DType::u16:
          put(out, i, whole<std::uint16_t>(v));
          break;
        case DType::u8:
          put(out, i, whole<std::uint8_t>(v));
          break;
        case DType::boolean:
          put(out, i, static_cast<std::uint8_t>(v != 0));
          break;
        default:
          break;  // zeros
      }
    }
  });
}

}  // namespace modelflow::fuzz
