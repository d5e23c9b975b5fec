// Elements of every type as double or int64.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "modelflow/error.h"
#include "modelflow/tensor.h"

namespace modelflow {
namespace {

/// A float format of at most 16 bits. `finite`: no infinities; NaN is the all-ones code or, with `unsigned_zero`, -0.
struct Format {
  int exponent, mantissa, bias;
  bool finite = false, unsigned_zero = false;
};

double decode(unsigned code, const Format& f) {
  const unsigned sign = code >> (f.exponent + f.mantissa) & 1;
  const unsigned exponent = code >> f.mantissa & ((1U << f.exponent) - 1);
  const unsigned mantissa = code & ((1U << f.mantissa) - 1);
  const unsigned last_exponent = (1U << f.exponent) - 1, last_mantissa = (1U << f.mantissa) - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (f.unsigned_zero && sign && !exponent && !mantissa) return nan;
  if (!f.finite && exponent == last_exponent) {
    return mantissa ? nan : (sign ? -1 : 1) * std::numeric_limits<double>::infinity();
  }
  const bool all_ones = exponent == last_exponent && mantissa == last_mantissa;
  if (f.finite && !f.unsigned_zero && f.exponent > 2 && all_ones) return nan;
  const int power = (exponent ? static_cast<int>(exponent) : 1) - f.bias - f.mantissa;
  const double magnitude = std::ldexp(mantissa + (exponent ? 1U << f.mantissa : 0U), power);
  return sign ? -magnitude : magnitude;
}

/// Whole numbers out of bounds and NaN become the nearest one and 0: C++ says nothing of them.
template <class To, class From>
To number(From x) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr auto end = -static_cast<From>(std::numeric_limits<To>::min());  // a power of two
    if (!(x < end)) return std::isnan(x) ? 0 : std::numeric_limits<To>::max();
    if (x < -end) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(x);
}

template <class To, class From>
std::vector<To> cast(const std::byte* data, std::size_t count) {
  std::vector<To> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, data + i * sizeof(From), sizeof(From));
    out[i] = number<To>(element);
  }
  return out;
}

template <class To>
std::vector<To> decode_all(const std::byte* data, std::size_t count, int width, const Format& format) {
  std::vector<To> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    unsigned code = 0;
    if (width == 16) {
      code = static_cast<unsigned>(data[2 * i]) | static_cast<unsigned>(data[2 * i + 1]) << 8;
    } else {
      const std::size_t bit = i * static_cast<std::size_t>(width);
      code = static_cast<unsigned>(data[bit / 8]) >> (bit % 8) & ((1U << width) - 1);
    }
    out[i] = number<To>(decode(code, format));
  }
  return out;
}

template <class To>
std::vector<To> unpack(const std::byte* data, std::size_t count, int width, bool is_signed) {
  std::vector<To> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bit = i * static_cast<std::size_t>(width);
    int code = static_cast<int>(data[bit / 8]) >> (bit % 8) & ((1 << width) - 1);
    if (is_signed && code >= 1 << (width - 1)) code -= 1 << width;
    out[i] = static_cast<To>(code);
  }
  return out;
}

template <class To>
std::vector<To> small_floats(DType dtype, const std::byte* data, std::size_t n) {
  switch (dtype) {
    case DType::f16:
      return decode_all<To>(data, n, 16, {5, 10, 15});
    case DType::bf16:
      return decode_all<To>(data, n, 16, {8, 7, 127});
    case DType::f8e4m3fn:
      return decode_all<To>(data, n, 8, {4, 3, 7, true});
    case DType::f8e4m3fnuz:
      return decode_all<To>(data, n, 8, {4, 3, 8, true, true});
    case DType::f8e5m2:
      return decode_all<To>(data, n, 8, {5, 2, 15});
    case DType::f8e5m2fnuz:
      return decode_all<To>(data, n, 8, {5, 2, 16, true, true});
    case DType::f4e2m1:
      return decode_all<To>(data, n, 4, {2, 1, 1, true});
    case DType::f8e8m0: {
      std::vector<To> out(n);
      for (std::size_t i = 0; i < n; ++i) out[i] = number<To>(std::ldexp(1.0, static_cast<int>(data[i]) - 127));
      return out;
    }
    default:
      break;
  }
  throw Error(ErrorKind::internal, "the elements of a " + std::string(name(dtype)) + " tensor are not numbers");
}

template <class To>
std::vector<To> convert(const Tensor& tensor) {
  const std::byte* data = tensor.data();
  const auto n = static_cast<std::size_t>(tensor.elements());
  switch (tensor.dtype()) {
    case DType::f32:
      return cast<To, float>(data, n);
    case DType::f64:
      return cast<To, double>(data, n);
    case DType::u8:
      return cast<To, std::uint8_t>(data, n);
    case DType::i8:
      return cast<To, std::int8_t>(data, n);
    case DType::u16:
      return cast<To, std::uint16_t>(data, n);
    case DType::i16:
      return cast<To, std::int16_t>(data, n);
    case DType::u32:
      return cast<To, std::uint32_t>(data, n);
    case DType::i32:
      return cast<To, std::int32_t>(data, n);
    case DType::u64:
      return cast<To, std::uint64_t>(data, n);
    case DType::i64:
      return cast<To, std::int64_t>(data, n);
    case DType::boolean:
      return cast<To, std::uint8_t>(data, n);
    case DType::u4:
      return unpack<To>(data, n, 4, false);
    case DType::i4:
      return unpack<To>(data, n, 4, true);
    case DType::u2:
      return unpack<To>(data, n, 2, false);
    case DType::i2:
      return unpack<To>(data, n, 2, true);
    default:
      return small_floats<To>(tensor.dtype(), data, n);
  }
}

}  // namespace

std::vector<double> Tensor::to_doubles() const { return convert<double>(*this); }

std::vector<std::int64_t> Tensor::to_ints() const { return convert<std::int64_t>(*this); }

}  // namespace modelflow
