// Tensors of float32 in float16 and bfloat16.
#pragma once

#include <algorithm>

#include "src/core/half.h"

namespace modelflow {

/// A tensor of float32 as float16 or bfloat16, the nearest; what is something else stays it.
inline Tensor in_type(const Tensor& from, DType type) {
  if (from.dtype() != DType::f32 || (type != DType::f16 && type != DType::bf16)) return from;
  return Tensor::make(type, from.dims(), [&](std::byte* bytes) {
    std::ranges::transform(from.as<float>(), reinterpret_cast<std::uint16_t*>(bytes),
                           [&](float x) { return type == DType::f16 ? to_f16(x) : to_bf16(x); });
  });
}

}  // namespace modelflow
