// The loops of norm.h, written over vectors (see vector.h).
#pragma once

#include <cmath>
#include <utility>

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
MODELFLOW_INLINE const float* with_residual(const NormRows& row) {
  if (!row.residual && !row.sum) return row.x;
  float* sum = row.sum ? row.sum : row.y;
  vectors(row.n, [&](std::size_t i, auto part) {
    const Floats x = load(row.x + i, part);
    store(sum + i, row.residual ? x + load(row.residual + i, part) : x, part);
  });
  return sum;
}

/// Goes to the next row.
MODELFLOW_INLINE void advance(NormRows& row) {
  row.x += row.n;
  if (row.residual) row.residual += row.n;
  if (row.sum) row.sum += row.n;
  row.y += row.n;
}

/// What a row's deviations from the mean are multiplied by.
MODELFLOW_INLINE float factor_of(float squares, const NormRows& row) {
  return 1 / std::sqrt(squares / static_cast<float>(row.n) + row.epsilon);
}

/// Rows of so many vectors, the last perhaps with fewer numbers: they stay in registers, and rows do not wait for each
/// other. A row is read before the one in front of it is written, since y may be x: a store of fewer numbers than a
/// vector keeps a load behind it waiting that begins within that vector.
template <std::size_t count, bool rms>
MODELFLOW_INLINE void narrow_rows(NormRows row) {
  const Rest rest(row.n - (count - 1) * kLanes);
  const auto each = [&](auto body) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v + 1 < count; ++v) body(v, v * kLanes, Whole{});
    body(count - 1, (count - 1) * kLanes, rest);
  };
  Floats next[count];
  const auto read = [&](const NormRows& from) __attribute__((always_inline)) {
    each([&](std::size_t v, std::size_t i, auto part) {
      next[v] = load(from.x + i, part);
      if (from.residual) next[v] += load(from.residual + i, part);
    });
  };
  if (row.rows > 0) read(row);
  for (std::size_t r = 0; r < row.rows; ++r) {
    const NormRows now = row;
    Floats x[count], sums[2] = {}, squares[2] = {};
    each([&](std::size_t v, std::size_t, auto) { sums[v % 2] += x[v] = next[v]; });
    advance(row);
    if (r + 1 < row.rows) read(row);
    if (now.sum) each([&](std::size_t v, std::size_t i, auto part) { store(now.sum + i, x[v], part); });
    const float mean = rms ? 0 : sum_of(sums[0] + sums[1]) / static_cast<float>(row.n);
    each([&](std::size_t v, std::size_t, auto part) {
      if (!rms) x[v] = only(x[v] - mean, part);
      squares[v % 2] += x[v] * x[v];
    });
    const float factor = factor_of(sum_of(squares[0] + squares[1]), row);
    each([&](std::size_t v, std::size_t i, auto part) {
      Floats y = x[v] * factor * load(now.scale + i, part);
      if (!rms) y += load(now.bias + i, part);
      store(now.y + i, y, part);
    });
  }
}

template <bool rms>
MODELFLOW_INLINE void wide_rows(NormRows row) {
  for (std::size_t r = 0; r < row.rows; ++r, advance(row)) {
    const float* x = with_residual(row);
    const float mean = rms ? 0 : sum_of(x, row.n) / static_cast<float>(row.n);
    const float factor = factor_of(squares_of(x, row.n, mean), row);
    vectors(row.n, [&](std::size_t i, auto part) {
      Floats y = (rms ? load(x + i, part) : load(x + i, part) - mean) * factor * load(row.scale + i, part);
      if (!rms) y += load(row.bias + i, part);
      store(row.y + i, y, part);
    });
  }
}

template <bool rms, std::size_t... less>
MODELFLOW_INLINE void norm_rows(const NormRows& row, std::index_sequence<less...>) {
  const std::size_t vectors_of_row = (row.n + kLanes - 1) / kLanes;
  const bool narrow = ((vectors_of_row == less + 1 && (narrow_rows<less + 1, rms>(row), true)) || ...);
  if (!narrow) wide_rows<rms>(row);
}

MODELFLOW_FLAT void layer_norm(NormRows rows) { norm_rows<false>(rows, std::make_index_sequence<8>()); }
MODELFLOW_FLAT void rms_norm(NormRows rows) { norm_rows<true>(rows, std::make_index_sequence<8>()); }

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
