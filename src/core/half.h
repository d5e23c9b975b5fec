// Numbers and tensors to the two floats of 16 bits, and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "modelflow/tensor.h"
#include "src/core/bf16.h"

namespace modelflow {

/// To the nearest float16, ties to the even one, as ONNX's Cast does: 65520 and more become infinite, NaN stays NaN.
inline std::uint16_t to_f16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t sign = bits >> 16 & 0x8000U, size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (size >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  // Below 2^-14 numbers are multiples of 2^-24; 1024 of them are the least one with an exponent of its own.
  if (size < 0x38800000U) return static_cast<std::uint16_t>(sign | std::lrint(std::ldexp(std::fabs(x), 24)));
  return static_cast<std::uint16_t>(sign | ((size + 0xfffU + (size >> 13 & 1U) - 0x38000000U) >> 13));
}

inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 0x1fU, fraction = bits & 0x3ffU;
  if (exponent == 0) {
    const float small = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -small : small;
  }
  const std::uint32_t word = sign | (exponent == 31 ? 0xffU : exponent + 112) << 23 | fraction << 13;
  float x;
  std::memcpy(&x, &word, sizeof x);
  return x;
}

/// The largest finite number of a float of 16 bits.
inline float largest(DType half) { return half == DType::f16 ? 65504.0F : 0x1.fep127F; }
/// What is nearer to 0 than to this becomes 0.
inline float least(DType half) { return half == DType::f16 ? 0x1p-24F : 0x1p-133F; }

/// A float32 tensor in a float of 16 bits. Finite numbers stay finite: beyond the largest they become that.
inline Tensor to_half(const Tensor& tensor, DType half) {
  return Tensor::make(half, tensor.dims(), [&](std::byte* out) {
    const float most = largest(half);
    for (const float x : tensor.as<float>()) {
      const float kept = std::isfinite(x) ? std::fmin(std::fmax(x, -most), most) : x;
      const std::uint16_t bits = half == DType::f16 ? to_f16(kept) : to_bf16(kept);
      std::memcpy(out, &bits, sizeof bits);
      out += sizeof bits;
    }
  });
}

/// A tensor of float16 or bfloat16 as float32; what is something else stays it.
inline Tensor in_float32(const Tensor& from) {
  const DType type = from.dtype();
  if (type != DType::f16 && type != DType::bf16) return from;
  return Tensor::make(DType::f32, from.dims(), [&](std::byte* bytes) {
    const auto* first = reinterpret_cast<const std::uint16_t*>(from.data());
    std::transform(first, first + from.elements(), reinterpret_cast<float*>(bytes),
                   type == DType::f16 ? from_f16 : from_bf16);
  });
}

}  // namespace modelflow
