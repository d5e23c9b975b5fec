// Numbers as elements of a type that has them.
#include "src/compose/numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "modelflow/error.h"
#include "src/core/half.h"

namespace modelflow {
namespace {

[[noreturn]] void refuse_large(Number value) {
  throw Error(ErrorKind::usage, fmt::format("{:g} is more than the type of the input holds", value));
}

template <class T>
T element(Number value) {
  if constexpr (!std::numeric_limits<T>::is_integer) {
    const T rounded = static_cast<T>(value);
    if (std::isinf(rounded) && !std::isinf(value)) refuse_large(value);
    return rounded;
  }
  const Number low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  if (std::isnan(value) || value < low || value > high || value != std::trunc(value))
    throw Error(ErrorKind::usage, fmt::format("{} is no whole number from {} to {}", static_cast<double>(value),
                                              std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()));
  return static_cast<T>(value);
}

template <class T>
Tensor filled(DType dtype, Dims dims, std::span<const Number> values) {
  return Tensor::make(dtype, std::move(dims), [&](std::byte* out) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = element<T>(values[i]);
      std::memcpy(out + i * sizeof(T), &value, sizeof(T));
    }
  });
}

Tensor half(DType dtype, Dims dims, std::span<const Number> values) {
  for (const Number value : values)
    if (std::isfinite(value) && std::fabs(value) > largest(dtype)) refuse_large(value);
  return to_half(filled<float>(DType::f32, std::move(dims), values), dtype);
}

}  // namespace

Tensor numbers(DType dtype, Dims dims, std::span<const Number> values) {
  switch (dtype) {
    case DType::f32:
      return filled<float>(dtype, std::move(dims), values);
    case DType::f64:
      return filled<double>(dtype, std::move(dims), values);
    case DType::f16:
    case DType::bf16:
      return half(dtype, std::move(dims), values);
    case DType::i64:
      return filled<std::int64_t>(dtype, std::move(dims), values);
    case DType::u64:
      return filled<std::uint64_t>(dtype, std::move(dims), values);
    case DType::i32:
      return filled<std::int32_t>(dtype, std::move(dims), values);
    case DType::u32:
      return filled<std::uint32_t>(dtype, std::move(dims), values);
    case DType::i16:
      return filled<std::int16_t>(dtype, std::move(dims), values);
    case DType::u16:
      return filled<std::uint16_t>(dtype, std::move(dims), values);
    case DType::i8:
      return filled<std::int8_t>(dtype, std::move(dims), values);
    case DType::u8:
      return filled<std::uint8_t>(dtype, std::move(dims), values);
    case DType::boolean:
      return filled<bool>(dtype, std::move(dims), values);
    default:
      throw Error(ErrorKind::unsupported, fmt::format("numbers of type {} cannot be written down", name(dtype)));
  }
}

}  // namespace modelflow
