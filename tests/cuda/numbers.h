// Tensors in the types that kernels of a device compute with, and how far their results may be from float32's.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "backends/floats.h"
#include "modelflow/tensor.h"
#include "tests/close.h"

namespace modelflow::cuda {

/// The last digit of 1 in this type.
inline float digit(DType type) { return type == DType::f16 ? 0x1p-10F : type == DType::bf16 ? 0x1p-7F : 0; }

/// The first place where they differ, or nothing. Kernels sum in float32 and round what they store: an operand that
/// they make on the way (a sum with a residual) and the result, half a digit each. Of numbers that are not finite the
/// kind counts.
inline std::string difference(const Tensor& exact, const Tensor& narrow) {
  if (exact.dtype() == DType::u8) return modelflow::difference(exact, narrow, 0);
  const Tensor got = in_float32(narrow),
               want = in_float32(in_type(exact, narrow.dtype()));  // beyond the type: infinity
  if (want.dims() != got.dims()) return "is " + Shape::of(got.dims()).str() + ", not " + Shape::of(want.dims()).str();
  const auto a = want.as<float>(), b = got.as<float>();
  float largest = 1;
  for (const float v : a)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  const float tolerance = 2e-5F * largest + digit(narrow.dtype()) * largest;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance) continue;
    return "[" + std::to_string(i) + "] of " + Shape::of(want.dims()).str() + " is " + std::to_string(b[i]) + ", not " +
           std::to_string(a[i]);
  }
  return "";
}

}  // namespace modelflow::cuda
