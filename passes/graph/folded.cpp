// Whether numbers folded into one another stay in range and keep their digits.
#include "passes/graph/folded.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace modelflow::passes {
namespace {

constexpr double kLargestScale = 0x1p64, kLeastScale = 0x1p-64;
/// Of the larger addend: what may be left of a sum, whose rounding (2^-24) is then 6e-5 of it at most.
constexpr double kLeastShare = 0x1p-10;

/// The largest magnitude; NaN where there is one.
template <class T>
double largest_of(std::span<const T> values) {
  T largest = 0;
  for (const T v : values) {
    if (std::isnan(v)) return v;
    largest = std::max(largest, std::abs(v));
  }
  return largest;
}

bool in_range(double largest) { return largest == 0 || (largest >= kLeastScale && largest <= kLargestScale); }

template <class T>
std::optional<Tensor> narrowed(Dims dims, const std::vector<double>& values) {
  using Limits = std::numeric_limits<T>;
  const double largest = largest_of(std::span<const double>(values));
  if (!(largest <= Limits::max())) return std::nullopt;
  // Beside a largest number that keeps all its digits, what falls below the normal ones is less than its last.
  if (largest > 0 && largest * Limits::epsilon() < Limits::min()) return std::nullopt;
  const std::vector<T> out(values.begin(), values.end());
  return Tensor::of<T>(std::move(dims), std::span<const T>(out));
}

}  // namespace

bool ordinary(std::span<const double> scales) { return in_range(largest_of(scales)); }

bool ordinary(const Tensor& scales) {
  return scales.dtype() == DType::f32 && in_range(largest_of(std::span(scales.as<float>())));
}

std::optional<float> folded_scale(double a, double b) {
  const auto good = [](double x) { return ordinary(std::span(&x, 1)); };
  return good(a) && good(b) && good(a * b) ? std::optional(static_cast<float>(a * b)) : std::nullopt;
}

std::optional<float> folded_shift(double a, double b) {
  const auto sum = static_cast<float>(a + b);
  return std::isfinite(sum) && !cancels(std::span(&a, 1), std::span(&b, 1)) ? std::optional(sum) : std::nullopt;
}

bool cancels(std::span<const double> a, std::span<const double> b) {
  const auto at = [](std::span<const double> values, std::size_t i) {
    return values.size() == 1 ? values[0] : values[i];
  };
  double sum = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) sum = std::max(sum, std::abs(at(a, i) + at(b, i)));
  return sum < kLeastShare * std::max(largest_of(a), largest_of(b));
}

bool foldable_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

std::optional<Tensor> from_doubles(DType dtype, Dims dims, const std::vector<double>& values) {
  if (dtype == DType::f32) return narrowed<float>(std::move(dims), values);
  if (dtype == DType::f64) return narrowed<double>(std::move(dims), values);
  return std::nullopt;
}

}  // namespace modelflow::passes
