// Operands drawn: normal numbers, weights, special ones.
#include "tests/domains/operands.h"

#include <bit>
#include <cmath>
#include <limits>

#include "src/core/bf16.h"

namespace modelflow::domains {
namespace {

template <class T, class Draw>
Tensor drawn(const Dims& dims, Draw draw) {
  return Tensor::make(dtype_of<T>, dims, [&](std::byte* bytes) {
    const std::int64_t count = element_count(dims);
    for (std::int64_t i = 0; i < count; ++i) reinterpret_cast<T*>(bytes)[i] = static_cast<T>(draw());
  });
}

/// NaN of ONNX Runtime, of CUDA, of either sign, and with a payload: bits that arithmetic on them must not make a
/// number of.
constexpr std::uint32_t kNans[] = {0x7fc00000, 0x7fffffff, 0xffffffff, 0x7fc00001};

float special_number(Special kind, std::int64_t which) {
  using Limits = std::numeric_limits<float>;
  const bool negative = which % 2 == 0;
  switch (kind) {
    case Special::nan:
      return std::bit_cast<float>(kNans[which]);
    case Special::infinite:
      return negative ? -Limits::infinity() : Limits::infinity();
    case Special::huge:
      return 3e36f;
    case Special::largest:
      return negative ? -1.5e38f : 1.5e38f;  // twice it still is a number
    default:
      return negative ? -1e-40f : 1e-40f;
  }
}

}  // namespace

void Operands::add(const char* name, Tensor value, bool constant) {
  const Tensor& kept = values_.emplace_back(std::move(value));
  call.inputs.push_back({name, kept.dtype(), Shape::of(kept.dims()), constant ? &kept : nullptr});
}

Tensor Operands::spoiled(Tensor value) {
  const bool wide = value.dtype() == DType::f32;
  if (special_ == Special::none || value.elements() == 0 || (!wide && value.dtype() != DType::bf16)) return value;
  return Tensor::make(value.dtype(), value.dims(), [&](std::byte* bytes) {
    std::copy_n(value.data(), byte_count(value.dtype(), value.dims()), bytes);
    // Of huge numbers one: two could cancel, and what then is left depends on the order of a sum.
    const std::int64_t most = special_ == Special::huge ? 1 : 3;
    for (std::int64_t i = 0; i < 1 + value.elements() / 40 && i < most; ++i) {
      const std::int64_t at = below(value.elements());
      const float x = special_number(special_, below(std::ssize(kNans)));
      if (wide)
        reinterpret_cast<float*>(bytes)[at] = x;
      else
        reinterpret_cast<std::uint16_t*>(bytes)[at] = to_bf16(x);
    }
  });
}

Tensor Operands::normal(const Dims& dims, float deviation) {
  // The sum of four uniform numbers of one draw, as good as normal ones.
  const float scale = deviation * std::sqrt(3.0f) / 65536;  // one of them has a variance of 2^32 / 12
  return drawn<float>(dims, [&] {
    const std::uint64_t bits = random();
    const std::uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    return scale * (static_cast<float>(sum) - 131070);
  });
}

Tensor Operands::weights(const Dims& dims, std::int64_t depth) {
  const float size = 1.5f / std::sqrt(static_cast<float>(std::max<std::int64_t>(depth, 1)));
  return uniform(dims, -size, size);
}

Tensor Operands::uniform(const Dims& dims, float low, float high) {
  const float step = (high - low) / (1 << 24);
  return drawn<float>(dims, [&] { return low + step * static_cast<float>(random() >> 40); });
}

Tensor Operands::bytes(const Dims& dims) {
  return drawn<std::uint8_t>(dims, [&] { return below(256); });
}

Tensor Operands::steps(const Dims& dims, int largest) {
  return drawn<std::int8_t>(dims, [&] { return below(2 * largest + 1) - largest; });
}

Tensor Operands::integers(const Dims& dims, int size) {
  return drawn<std::int32_t>(dims, [&] { return below(2 * size + 1) - size; });
}

Tensor Operands::flags(const Dims& dims, double share) {
  return drawn<bool>(dims, [&] { return chance(share); });
}

Tensor Operands::ids(const Dims& dims, std::int64_t rows, bool narrow) {
  const auto id = [&] { return below(2 * rows) - rows; };
  return narrow ? drawn<std::int32_t>(dims, id) : drawn<std::int64_t>(dims, id);
}

}  // namespace modelflow::domains
