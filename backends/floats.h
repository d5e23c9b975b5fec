// Tensors of float32 in float16 and bfloat16, and back.
#pragma once

#include <algorithm>

#include "backends/cuda/emulator/numbers.h"
#include "modelflow/tensor.h"

namespace modelflow {

/// As T, the nearest.
template <class T>
Tensor narrowed(const Tensor& from, DType type) {
  return Tensor::make(type, from.dims(), [&](std::byte* bytes) {
    std::ranges::transform(from.as<float>(), reinterpret_cast<T*>(bytes), [](float x) { return T(x); });
  });
}

template <class T>
Tensor widened(const Tensor& from) {
  return Tensor::make(DType::f32, from.dims(), [&](std::byte* bytes) {
    const auto* first = reinterpret_cast<const T*>(from.data());
    std::transform(first, first + from.elements(), reinterpret_cast<float*>(bytes), [](T x) { return float(x); });
  });
}

/// A tensor of float32 as float16 or bfloat16; what is something else stays it.
inline Tensor in_type(const Tensor& from, DType type) {
  if (from.dtype() != DType::f32) return from;
  return type == DType::f16    ? narrowed<cuda::Half>(from, type)
         : type == DType::bf16 ? narrowed<cuda::BFloat16>(from, type)
                               : from;
}

/// A tensor of float16 or bfloat16 as float32; what is something else stays it.
inline Tensor in_float32(const Tensor& from) {
  const DType type = from.dtype();
  return type == DType::f16 ? widened<cuda::Half>(from) : type == DType::bf16 ? widened<cuda::BFloat16>(from) : from;
}

}  // namespace modelflow
