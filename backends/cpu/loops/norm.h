// Loops of the normalizations: rows, moments, and shift and scale by channel.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// Mean and sum of squared deviations from it, over `count` numbers.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  /// From the sums of the distances, and of their squares, from a `middle` near the mean: what the rounding of that
  /// left is put right (Chan, Golub and LeVeque), so that the mean of equal numbers is that number.
  static Moments about(double middle, double count, double sum, double squares);
  /// The moments of both sets together (the same authors): nothing cancels, however far the mean is from 0.
  void add(const Moments& other);
  double variance() const { return count > 0 ? squares / count : 0; }
};

/// Rows of n floats to normalize, one behind the other. With a residual it is added first; what is normalized goes to
/// `sum` too, or stays inside.
struct NormRows {
  std::size_t n = 0, rows = 1;
  const float* x = nullptr;
  const float* residual = nullptr;  ///< or null
  const float* scale = nullptr;
  const float* bias = nullptr;  ///< not read by rms_norm
  float epsilon = 0;
  float* sum = nullptr;  ///< or null
  float* y = nullptr;    ///< may be x
};

/// Loops of the normalizations. Written once in norm_loops.h.
struct NormLoops {
  void (*layer_norm)(NormRows rows);
  void (*rms_norm)(NormRows rows);
  /// Of n floats, in two passes: for pieces that stay in the first cache.
  Moments (*moments)(const float* x, std::size_t n);
  /// y[i] = (x[i] - mean) * factor + term; y may be x.
  void (*shift_and_scale)(const float* x, std::size_t n, float mean, float factor, float term, float* y);
  /// sum[c] += x[r, c] - mean[c] over all rows, and squares[c] their squares.
  void (*add_distances)(const float* x, std::size_t rows, std::size_t channels, const float* mean, float* sum,
                        float* squares);
  /// y[r, c] = (x[r, c] - mean[c]) * factor[c] + term[c]; y may be x.
  void (*shift_and_scale_rows)(const float* x, std::size_t rows, std::size_t channels, const float* mean,
                               const float* factor, const float* term, float* y);
};

}  // namespace modelflow::cpu
