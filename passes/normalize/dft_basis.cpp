// The numbers that a discrete Fourier transform multiplies by, as filters and as matrices.
#include "passes/normalize/dft_basis.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace modelflow::passes {

/// What part of y[k] one of x[n] is multiplied by: x * (c + i s) where x is 1 (component 0) or i (component 1).
double DftBasis::weight(bool imaginary, std::int64_t component, std::int64_t k, std::int64_t n) const {
  // The angle from an exact remainder: k * n turns would lose digits with growing lengths.
  const double turns = static_cast<double>(k * n % length) / static_cast<double>(length);
  const double angle = 2 * std::numbers::pi * turns, sign = inverse ? 1 : -1;
  const double scale = inverse ? 1 / static_cast<double>(length) : 1;
  const auto exact = [](double v) { return std::abs(v) < 1e-15 ? 0.0 : v; };  // a quarter turn is none in radians
  const double c = exact(std::cos(angle)), s = exact(sign * std::sin(angle));
  const double part = imaginary == (component == 0) ? s : c;
  return scale * (component == 1 && !imaginary ? -part : part) + 0.0;  // no -0
}

Tensor DftBasis::filters(std::span<const float> window, Part part) const {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(outputs(part) * length));
  for (std::int64_t row = 0; row < outputs(part); ++row) {
    const std::int64_t k = part == Part::both ? row / 2 : row;
    const bool imaginary = part == Part::imaginary || (part == Part::both && row % 2 == 1);
    for (std::int64_t n = 0; n < length; ++n) {
      const double factor = window.empty() ? 1 : static_cast<double>(window[static_cast<std::size_t>(n)]);
      values.push_back(static_cast<float>(factor * weight(imaginary, 0, k, n)));
    }
  }
  return Tensor::of<float>({outputs(part), 1, length}, std::span<const float>(values));
}

Tensor DftBasis::matrix(std::int64_t rows, std::int64_t components, Part part) const {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(rows * components * outputs(part)));
  for (std::int64_t row = 0; row < rows * components; ++row) {
    const std::int64_t n = row / components;
    for (std::int64_t column = 0; column < outputs(part); ++column) {
      const std::int64_t k = part == Part::both ? column / 2 : column;
      const bool imaginary = part == Part::imaginary || (part == Part::both && column % 2 == 1);
      values.push_back(n < length ? static_cast<float>(weight(imaginary, row % components, k, n)) : 0.0f);
    }
  }
  return Tensor::of<float>({rows * components, outputs(part)}, std::span<const float>(values));
}

}  // namespace modelflow::passes
