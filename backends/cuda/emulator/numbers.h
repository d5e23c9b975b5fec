// Float16 and bfloat16 on the host, under the names that they have in kernel sources: storage that converts from and to
// float, to the nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace modelflow::cuda {

/// IEEE 754 binary16.
struct Half {
  Half() = default;
  explicit Half(float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = word >> 16 & 0x8000U, rest = word & 0x7fffffffU;
    constexpr std::uint32_t kInfinity = 0x7f800000U, kOverflow = 0x477ff000U, kNormal = 0x38800000U;
    if (rest > kInfinity) {
      bits = static_cast<std::uint16_t>(sign | 0x7e00U);  // NaN
    } else if (rest >= kOverflow) {
      bits = static_cast<std::uint16_t>(sign | 0x7c00U);
    } else if (rest >= kNormal) {
      const std::uint32_t shifted = rest - (112U << 23U);  // the bias of the exponent: 127 there, 15 here
      bits = static_cast<std::uint16_t>(sign | ((shifted + 0xfffU + (shifted >> 13 & 1U)) >> 13));
    } else {
      bits =
          static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::fabs(x), 24))));
    }
  }
  operator float() const {
    const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 0x1fU, fraction = bits & 0x3ffU;
    if (exponent == 0) {
      const float small = std::ldexp(static_cast<float>(fraction), -24);
      return sign ? -small : small;
    }
    const std::uint32_t wide = exponent == 31 ? 0xffU : exponent + 112;
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
  }
  std::uint16_t bits;
};

/// The upper half of a float.
struct BFloat16 {
  BFloat16() = default;
  explicit BFloat16(float x) {
    const auto word = std::bit_cast<std::uint32_t>(x);
    bits = static_cast<std::uint16_t>(std::isnan(x) ? word >> 16 | 0x40U : (word + 0x7fffU + (word >> 16 & 1U)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  std::uint16_t bits;
};

}  // namespace modelflow::cuda
