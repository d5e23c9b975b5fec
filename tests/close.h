// How far what a kernel gives may be from what the body of its op gives.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "modelflow/tensor.h"
#include "src/core/bf16.h"

namespace modelflow {

/// Float sums in another order. The bodies of QLSTM and QGRU do not say that h is in steps as well: half a step of a
/// state of at most 1 may come out of each gate. An exponential of QAttention may fall on the other side of a rounding:
/// a 255th of the largest of its row, so the result moves by a 255th of the way to a value, which is at most twice the
/// largest (2 of 1500 cases move by more than half of that).
inline float tolerance_of(const std::string& op) {
  if (op == "QLSTM" || op == "QGRU") return 1.0f / 127;
  if (op == "QAttention") return 2.0f / 255;
  return op == "AttentionBf16" ? 1.0f / 255 : 2e-5f;
}

inline Tensor widened(const Tensor& tensor) {
  return Tensor::make(DType::f32, tensor.dims(), [&](std::byte* bytes) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(tensor.data());
    std::transform(from, from + tensor.elements(), reinterpret_cast<float*>(bytes), from_bf16);
  });
}

/// The first place where they differ, or nothing. Of numbers that are not finite the kind counts; a finite one may be
/// off by `tolerance` of the largest, bfloat16 by one step on top of it and u8 by one step: rarely, where float sums in
/// another order fall on the other side of a rounding.
inline std::string difference(const Tensor& want, const Tensor& got, float tolerance) {
  if (want.dims() != got.dims()) return "is " + Shape::of(got.dims()).str() + ", not " + Shape::of(want.dims()).str();
  if (want.dtype() != got.dtype()) return "is " + std::string(name(got.dtype()));
  std::size_t moved = 0;
  const auto at = [&](std::size_t i, auto a, auto b) {
    return "[" + std::to_string(i) + "] of " + Shape::of(want.dims()).str() + " is " + std::to_string(b) + ", not " +
           std::to_string(a);
  };
  if (want.dtype() == DType::u8) {
    const auto a = want.as<std::uint8_t>(), b = got.as<std::uint8_t>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::abs(a[i] - b[i]) > 1) return at(i, a[i], b[i]);
      moved += a[i] != b[i];
    }
    return moved <= 2 + a.size() / 500 ? "" : std::to_string(moved) + " numbers are one step off";
  }
  const bool narrow = want.dtype() == DType::bf16;
  const Tensor x = narrow ? widened(want) : want, y = narrow ? widened(got) : got;
  const auto a = x.as<float>(), b = y.as<float>();
  float largest = 1;
  for (const float v : a)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i]) continue;
    const float step = narrow ? std::abs(a[i]) * 0x1p-7f : 0;
    if (!(std::abs(a[i] - b[i]) <= step + tolerance * largest)) return at(i, a[i], b[i]);
    moved += std::abs(a[i] - b[i]) > tolerance * largest;
  }
  return moved <= 2 + a.size() / 200 ? "" : std::to_string(moved) + " numbers are one step off";
}

}  // namespace modelflow
