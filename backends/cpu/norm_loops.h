#pragma once

// Loops over 16 floats at a time, in the compiler's own vectors: one register where the machine has such wide ones,
// several elsewhere. Internal linkage on purpose: each including file is compiled for another instruction set, and the
// linker must not mix them.

#include <cmath>
#include <cstddef>

#include "backends/cpu/norm.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kWide = 16;
using Lanes = float __attribute__((vector_size(64)));
using LanesInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));

// References: a vector in a parameter would have a calling convention that depends on the instruction set.
inline const LanesInMemory& lanes(const float* x) { return *reinterpret_cast<const LanesInMemory*>(x); }
inline LanesInMemory& lanes(float* x) { return *reinterpret_cast<LanesInMemory*>(x); }

/// Four independent sums, because an addition takes four cycles.
struct Sums {
  Lanes a{}, b{}, c{}, d{};
  float total() const {
    const Lanes all = (a + b) + (c + d);
    float sum[kWide];
    for (std::size_t i = 0; i < kWide; ++i) sum[i] = all[i];
    for (std::size_t half = kWide / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sum[i] += sum[i + half];
    }
    return sum[0];
  }
};

inline float sum_of(const float* x, std::size_t n) {
  Sums s;
  std::size_t i = 0;
  for (; i + 4 * kWide <= n; i += 4 * kWide) {
    s.a += lanes(x + i);
    s.b += lanes(x + i + kWide);
    s.c += lanes(x + i + 2 * kWide);
    s.d += lanes(x + i + 3 * kWide);
  }
  for (; i + kWide <= n; i += kWide) s.a += lanes(x + i);
  float rest = 0;
  for (; i < n; ++i) rest += x[i];
  return s.total() + rest;
}

/// The sum of (x[i] - mean)^2.
inline float squares_of(const float* x, std::size_t n, float mean) {
  Sums s;
  std::size_t i = 0;
  for (; i + 4 * kWide <= n; i += 4 * kWide) {
    const Lanes a = lanes(x + i) - mean, b = lanes(x + i + kWide) - mean;
    const Lanes c = lanes(x + i + 2 * kWide) - mean, d = lanes(x + i + 3 * kWide) - mean;
    s.a += a * a;
    s.b += b * b;
    s.c += c * c;
    s.d += d * d;
  }
  for (; i + kWide <= n; i += kWide) {
    const Lanes a = lanes(x + i) - mean;
    s.a += a * a;
  }
  float rest = 0;
  for (; i < n; ++i) rest += (x[i] - mean) * (x[i] - mean);
  return s.total() + rest;
}

/// What is normalized: x, or its sum with the residual, which is put where it is wanted or else where y will be.
inline const float* with_residual(const NormRow& row) {
  if (!row.residual) return row.x;
  float* sum = row.sum ? row.sum : row.y;
  std::size_t i = 0;
  for (; i + kWide <= row.n; i += kWide) lanes(sum + i) = lanes(row.x + i) + lanes(row.residual + i);
  for (; i < row.n; ++i) sum[i] = row.x[i] + row.residual[i];
  return sum;
}

void layer_norm(const NormRow& row) {
  const float* x = with_residual(row);
  const auto n = static_cast<float>(row.n);
  const float mean = sum_of(x, row.n) / n;
  const float factor = 1 / std::sqrt(squares_of(x, row.n, mean) / n + row.epsilon);
  std::size_t i = 0;
  for (; i + kWide <= row.n; i += kWide)
    lanes(row.y + i) = (lanes(x + i) - mean) * factor * lanes(row.scale + i) + lanes(row.bias + i);
  for (; i < row.n; ++i) row.y[i] = (x[i] - mean) * factor * row.scale[i] + row.bias[i];
}

void rms_norm(const NormRow& row) {
  const float* x = with_residual(row);
  const float factor = 1 / std::sqrt(squares_of(x, row.n, 0) / static_cast<float>(row.n) + row.epsilon);
  std::size_t i = 0;
  for (; i + kWide <= row.n; i += kWide) lanes(row.y + i) = lanes(x + i) * factor * lanes(row.scale + i);
  for (; i < row.n; ++i) row.y[i] = x[i] * factor * row.scale[i];
}

Moments moments(const float* x, std::size_t n) {
  const float mean = sum_of(x, n) / static_cast<float>(n);
  return {static_cast<double>(n), mean, squares_of(x, n, mean)};
}

void shift_and_scale(const float* x, std::size_t n, float mean, float factor, float term, float* y) {
  std::size_t i = 0;
  for (; i + kWide <= n; i += kWide) lanes(y + i) = (lanes(x + i) - mean) * factor + term;
  for (; i < n; ++i) y[i] = (x[i] - mean) * factor + term;
}

void add_squares(const float* x, std::size_t rows, std::size_t channels, const float* mean, float* sum) {
  std::size_t c = 0;
  for (; c + kWide <= channels; c += kWide) {
    const Lanes middle = lanes(mean + c);
    Lanes total = lanes(sum + c);
    for (std::size_t r = 0; r < rows; ++r) {
      const Lanes apart = lanes(x + r * channels + c) - middle;
      total += apart * apart;
    }
    lanes(sum + c) = total;
  }
  for (; c < channels; ++c) {
    for (std::size_t r = 0; r < rows; ++r) {
      const float apart = x[r * channels + c] - mean[c];
      sum[c] += apart * apart;
    }
  }
}

void shift_and_scale_rows(const float* x, std::size_t rows, std::size_t channels, const float* mean,
                          const float* factor, const float* term, float* y) {
  for (std::size_t r = 0; r < rows; ++r, x += channels, y += channels) {
    std::size_t c = 0;
    for (; c + kWide <= channels; c += kWide)
      lanes(y + c) = (lanes(x + c) - lanes(mean + c)) * lanes(factor + c) + lanes(term + c);
    for (; c < channels; ++c) y[c] = (x[c] - mean[c]) * factor[c] + term[c];
  }
}

constexpr NormLoops kLoops = {layer_norm, rms_norm, moments, shift_and_scale, add_squares, shift_and_scale_rows};

}  // namespace
}  // namespace modelflow::cpu
