// Numbers for sample calls that are the same on every machine.
#include "backends/ops/sample_weights.h"

#include <cmath>

namespace modelflow::ops {

Tensor sample_weights(const Dims& dims, std::int64_t depth) {
  const float scale = 1.5f / std::sqrt(static_cast<float>(depth));
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    auto* out = reinterpret_cast<float*>(bytes);
    std::uint32_t state = 521288629u + static_cast<std::uint32_t>(element_count(dims));
    for (std::int64_t i = 0; i < element_count(dims); ++i) {
      state = state * 1664525u + 1013904223u;
      out[i] = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1);
    }
  });
}

Tensor sample_steps(const Dims& dims) {
  return Tensor::make(DType::i8, dims, [&](std::byte* bytes) {
    std::uint32_t state = 2463534242u + static_cast<std::uint32_t>(element_count(dims));
    for (std::int64_t i = 0; i < element_count(dims); ++i) {
      state = state * 1664525u + 1013904223u;
      bytes[i] = static_cast<std::byte>(static_cast<std::int8_t>(static_cast<int>((state >> 8) % 255) - 127));
    }
  });
}

Tensor sample_bytes(const Dims& dims) {
  return Tensor::make(DType::u8, dims, [&](std::byte* bytes) {
    std::uint32_t state = 362436069u + static_cast<std::uint32_t>(element_count(dims));
    for (std::int64_t i = 0; i < element_count(dims); ++i) {
      state = state * 1664525u + 1013904223u;
      bytes[i] = static_cast<std::byte>(state >> 24);
    }
  });
}

Attrs with(Attrs attrs, const Attrs& more) {
  for (const auto& [name, value] : more) attrs.set(name, value);
  return attrs;
}

Operand constant_operand(const char* name, const Tensor& tensor) {
  return {name, tensor.dtype(), Shape::of(tensor.dims()), &tensor};
}

Operand Samples::operand(const char* name, const Dims& dims, std::int64_t depth) {
  Operand made{name, DType::f32, Shape::of(dims)};
  if (depth) made.constant = &weights.emplace_back(sample_weights(dims, depth));
  return made;
}

}  // namespace modelflow::ops
