// The loops of norm.h, written over vectors (see vector.h).
#pragma once

#include <cmath>

#include "backends/cpu/loops/norm.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

/// What vectors_by_four left.
MODELFLOW_INLINE float sum_of_four(const Floats (&sums)[4]) {
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

MODELFLOW_INLINE float sum_of(const float* x, std::size_t n) {
  Floats sums[4] = {};
  vectors_by_four(n, [&](std::size_t i, auto part, std::size_t v) { sums[v] += load(x + i, part); });
  return sum_of_four(sums);
}

/// The sum of (x[i] - mean)^2.
MODELFLOW_INLINE float squares_of(const float* x, std::size_t n, float mean) {
  Floats sums[4] = {};
  vectors_by_four(n, [&](std::size_t i, auto part, std::size_t v) {
    const Floats apart = load(x + i, part, mean) - mean;
    sums[v] += apart * apart;
  });
  return sum_of_four(sums);
}

/// What is normalized: x, or its sum with the residual, which is put where it is wanted or else where y will be.
MODELFLOW_INLINE const float* with_residual(const NormRow& row) {
  if (!row.residual) return row.x;
  float* sum = row.sum ? row.sum : row.y;
  vectors(row.n, [&](std::size_t i, auto part) {
    store(sum + i, load(row.x + i, part) + load(row.residual + i, part), part);
  });
  return sum;
}

MODELFLOW_FLAT void layer_norm(const NormRow& row) {
  const float* x = with_residual(row);
  const auto n = static_cast<float>(row.n);
  const float mean = sum_of(x, row.n) / n;
  const float factor = 1 / std::sqrt(squares_of(x, row.n, mean) / n + row.epsilon);
  vectors(row.n, [&](std::size_t i, auto part) {
    const Floats y = (load(x + i, part) - mean) * factor * load(row.scale + i, part) + load(row.bias + i, part);
    store(row.y + i, y, part);
  });
}

MODELFLOW_FLAT void rms_norm(const NormRow& row) {
  const float* x = with_residual(row);
  const float factor = 1 / std::sqrt(squares_of(x, row.n, 0) / static_cast<float>(row.n) + row.epsilon);
  vectors(row.n, [&](std::size_t i, auto part) {
    store(row.y + i, load(x + i, part) * factor * load(row.scale + i, part), part);
  });
}

MODELFLOW_FLAT Moments moments(const float* x, std::size_t n) {
  const float mean = sum_of(x, n) / static_cast<float>(n);
  Floats sums[4] = {}, squares[4] = {};
  vectors_by_four(n, [&](std::size_t i, auto part, std::size_t v) {
    const Floats apart = load(x + i, part, mean) - mean;
    sums[v] += apart;
    squares[v] += apart * apart;
  });
  return Moments::about(mean, static_cast<double>(n), sum_of_four(sums), sum_of_four(squares));
}

MODELFLOW_FLAT void shift_and_scale(const float* x, std::size_t n, float mean, float factor, float term, float* y) {
  vectors(n, [&](std::size_t i, auto part) { store(y + i, (load(x + i, part) - mean) * factor + term, part); });
}

MODELFLOW_FLAT void add_distances(const float* x, std::size_t rows, std::size_t channels, const float* mean, float* sum,
                                  float* squares) {
  vectors(channels, [&](std::size_t c, auto part) {
    const Floats middle = load(mean + c, part);
    Floats total = load(sum + c, part), of_squares = load(squares + c, part);
    for (std::size_t r = 0; r < rows; ++r) {
      const Floats apart = load(x + r * channels + c, part) - middle;
      total += apart;
      of_squares += apart * apart;
    }
    store(sum + c, total, part);
    store(squares + c, of_squares, part);
  });
}

MODELFLOW_FLAT void shift_and_scale_rows(const float* x, std::size_t rows, std::size_t channels, const float* mean,
                                         const float* factor, const float* term, float* y) {
  for (std::size_t r = 0; r < rows; ++r, x += channels, y += channels)
    vectors(channels, [&](std::size_t c, auto part) {
      const Floats apart = load(x + c, part) - load(mean + c, part);
      store(y + c, apart * load(factor + c, part) + load(term + c, part), part);
    });
}

}  // namespace
}  // namespace modelflow::cpu
