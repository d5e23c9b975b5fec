// Lays weights in 8 bits out for the device: once for each session.
#include "backends/cuda/bytes.h"

#include <algorithm>
#include <cmath>

namespace modelflow::cuda {
namespace {

struct Rows {
  std::int64_t rows, depth;
  std::span<const std::int8_t> of;
};

Rows rows_of(const Tensor& w) {
  const std::int64_t rows = w.dims()[0];
  return {rows, rows == 0 ? 0 : w.elements() / rows, w.as<std::int8_t>()};
}

}  // namespace

Steps steps_of(const CallAttrs& attrs, const std::string& of) {
  const std::string prefix = of.empty() ? "" : of + "_";
  return {attrs.number(prefix + "scale"), static_cast<std::int32_t>(attrs.integer(prefix + "zero_point"))};
}

Tensor padded(const Tensor& w) {
  const Rows from = rows_of(w);
  const std::int64_t stride = row_bytes(from.depth);
  return Tensor::make(DType::i8, {from.rows, stride}, [&](std::byte* to) {
    std::fill_n(to, from.rows * stride, std::byte{0});
    for (std::int64_t r = 0; r < from.rows; ++r) std::copy_n(w.data() + r * from.depth, from.depth, to + r * stride);
  });
}

Tensor shifts(const Tensor& w, const Tensor* bias, std::int32_t zero_point) {
  const Rows from = rows_of(w);
  return Tensor::make(DType::i32, {from.rows}, [&](std::byte* bytes) {
    auto* const to = reinterpret_cast<std::int32_t*>(bytes);
    for (std::int64_t r = 0; r < from.rows; ++r) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < from.depth; ++i) sum += from.of[static_cast<std::size_t>(r * from.depth + i)];
      // Sums wrap around and come back: what counts is the end.
      const std::int64_t begin = bias ? bias->as<std::int32_t>()[static_cast<std::size_t>(r)] : 0;
      to[r] = static_cast<std::int32_t>(begin - zero_point * sum);
    }
  });
}

Tensor scaled(const Tensor& w_scale, float unit) {
  const auto from = w_scale.as<float>();
  return Tensor::make(DType::f32, w_scale.dims(), [&](std::byte* to) {
    std::ranges::transform(from, reinterpret_cast<float*>(to), [unit](float scale) { return scale * unit; });
  });
}

Tensor dequantized(const Tensor& w, const Tensor& scale) {
  const Rows from = rows_of(w);
  const auto scales = scale.as<float>();
  return Tensor::make(DType::f32, w.dims(), [&](std::byte* bytes) {
    auto* const to = reinterpret_cast<float*>(bytes);
    for (std::size_t i = 0; i < from.of.size(); ++i)
      to[i] = static_cast<float>(from.of[i]) * scales[i / static_cast<std::size_t>(from.depth)];
  });
}

Verdict accepts_rows(const Operand& w, std::size_t axis, const Operand& scale, const Tensor* bias) {
  for (const Operand* operand : {&w, &scale})
    if (!operand->constant) return no("is not constant", operand->name);
  const Tensor& bytes = *w.constant;
  if (bytes.dtype() != DType::i8 || bytes.elements() == 0) return no("is not of numbers in 8 bits", w.name);
  const std::int64_t rows = bytes.dims()[axis];
  if (scale.constant->dims() != Dims{rows}) return no("has not one entry per filter", scale.name);
  double largest = 0;
  for (std::int64_t r = 0; bias && r < bias->elements(); ++r)
    largest = std::max(largest, std::abs(static_cast<double>(bias->as<std::int32_t>()[static_cast<std::size_t>(r)])));
  constexpr double kProduct = 255.0 * 128, kMost = 2e9;
  const std::int64_t depth = bytes.elements() / rows;
  const bool fits = largest + kProduct * static_cast<double>(depth) < kMost;
  return fits ? yes() : no("sums may leave the range of 32 bits", w.name);
}

}  // namespace modelflow::cuda
