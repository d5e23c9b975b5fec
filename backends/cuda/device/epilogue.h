// What follows a product or a convolution before its result is stored: scale, bias, residual, slopes, activation.
#pragma once

#include "backends/cuda/device/activation.h"
#include "backends/cuda/device/rows.h"
#include "backends/cuda/launches/products.h"

namespace modelflow::cuda {

/// `column` counts the results of a row (the channels of a pixel); `at` is the place of the result; `row` is needed
/// where a bias may be of rows.
template <class T>
__device__ inline float finished(const EpilogueLaunch& e, float sum, std::int64_t column, std::int64_t at,
                                 std::int64_t row = 0) {
  using Use = EpilogueLaunch::Residual;
  float x = sum * e.scale;
  if (e.bias) x += static_cast<float>(static_cast<const T*>(e.bias)[e.row_bias ? row : column]);
  const float residual = e.residual ? static_cast<float>(static_cast<const T*>(e.residual)[at]) : 0;
  if (e.use == Use::before) x += residual;
  if (e.slopes && x < 0.0F) x *= static_cast<float>(static_cast<const T*>(e.slopes)[column]);
  x = activated(e.activation, x);
  if (e.use == Use::after) x += residual;
  if (e.use == Use::times) x *= residual;
  return x;
}

/// Eight neighbours of a row of y ([rows, columns], its matrix begins at `first`), those of them that are in it.
/// Overwrites the sums.
template <class T>
__device__ inline void store_row(const EpilogueLaunch& e, float* sums, T* y, std::int64_t row, std::int64_t column,
                                 std::int64_t rows, std::int64_t columns, std::int64_t first, bool wide) {
  if (row >= rows || column >= columns) return;
  const std::int64_t at = first + row * columns + column;
  const int here = columns - column < 8 ? static_cast<int>(columns - column) : 8;
#pragma unroll 1
  for (int i = 0; i < here; ++i) sums[i] = finished<T>(e, sums[i], column + i, at + i, row);
  if (wide) {
    float v[8];
    for (int i = 0; i < 8; ++i) v[i] = sums[i];
    return write<T, 8>(v, y + at);
  }
  for (int i = 0; i < here; ++i) y[at + i] = T(sums[i]);
}

}  // namespace modelflow::cuda
