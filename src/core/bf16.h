// Numbers and tensors to bfloat16 and back.
#pragma once

#include <cstdint>
#include <cstring>

#include "modelflow/tensor.h"

namespace modelflow {

/// To the nearest number of 8 significant bits, ties to the even one, as ONNX's Cast does; NaN stays one.
inline std::uint16_t to_bf16(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

inline float from_bf16(std::uint16_t x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// A float32 tensor in bfloat16.
inline Tensor to_bf16(const Tensor& tensor) {
  return Tensor::make(DType::bf16, tensor.dims(), [&](std::byte* out) {
    for (const float x : tensor.as<float>()) {
      const std::uint16_t bits = to_bf16(x);
      std::memcpy(out, &bits, sizeof bits);
      out += sizeof bits;
    }
  });
}

}  // namespace modelflow
