// The discrete Fourier transform as a product.
#pragma once

#include <cstdint>
#include <span>

#include "modelflow/tensor.h"

namespace modelflow::passes {

/// The discrete Fourier transform as the product that it is: y[k] = sum over n of x[n] * exp(-2 pi i k n / length),
/// with
/// + instead of - and divided by the length when inverse (ONNX operators DFT and STFT).
struct DftBasis {
  std::int64_t length;  ///< of the transform
  std::int64_t bins;    ///< k < bins
  bool inverse = false;

  enum class Part { real, imaginary, both };

  /// [outputs, 1, length] for a convolution over a real signal: a row for every bin, times the window (empty: none);
  /// both: real and imaginary parts in turns.
  Tensor filters(std::span<const float> window, Part part) const;
  /// [rows * components, outputs] for a product with `rows` numbers, of two components each when they are complex. Rows
  /// beyond the length are not read.
  Tensor matrix(std::int64_t rows, std::int64_t components, Part part) const;

 private:
  double weight(bool imaginary, std::int64_t component, std::int64_t k, std::int64_t n) const;
  std::int64_t outputs(Part part) const { return part == Part::both ? 2 * bins : bins; }
};

}  // namespace modelflow::passes
