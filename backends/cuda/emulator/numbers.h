// Float16 and bfloat16 on the host, under the names that they have in kernel sources: storage that converts from and to
// float, to the nearest, ties to even.
#pragma once

#include <cstdint>

#include "src/core/half.h"

namespace modelflow::cuda {

struct Half {
  Half() = default;
  explicit Half(float x) : bits(to_f16(x)) {}
  operator float() const { return from_f16(bits); }
  std::uint16_t bits;
};

struct BFloat16 {
  BFloat16() = default;
  explicit BFloat16(float x) : bits(to_bf16(x)) {}
  operator float() const { return from_bf16(bits); }
  std::uint16_t bits;
};

}  // namespace modelflow::cuda
