#pragma once

// Plain loops that compilers vectorize. Internal linkage on purpose: each including file is compiled for another
// instruction set, and the linker must not mix them.

#include <algorithm>
#include <cstddef>

#include "backends/cpu/channels.h"

namespace modelflow::cpu {
namespace {

void add_rows(const float* x, std::size_t rows, std::size_t channels, float* __restrict sum) {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * channels) {
    const float *a = x, *b = x + channels, *c = b + channels, *d = c + channels;
    for (std::size_t i = 0; i < channels; ++i) sum[i] += (a[i] + b[i]) + (c[i] + d[i]);
  }
  for (; r < rows; ++r, x += channels) {
    for (std::size_t i = 0; i < channels; ++i) sum[i] += x[i];
  }
}

void max_rows(const float* x, std::size_t rows, std::size_t stride, std::size_t channels, float* __restrict best) {
  for (std::size_t r = 0; r < rows; ++r, x += stride) {
    for (std::size_t i = 0; i < channels; ++i) best[i] = x[i] > best[i] ? x[i] : best[i];
  }
}

// x may be y.
void scale_rows(const float* x, const float* factor, std::size_t rows, std::size_t channels, float* y) {
  for (std::size_t r = 0; r < rows; ++r, x += channels, y += channels) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < channels; ++i) y[i] = x[i] * factor[i];
  }
}

void scale(const float* x, float factor, std::size_t n, float* y) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}

float sum(const float* x, std::size_t n) {
  constexpr std::size_t kLanes = 32;
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  }
  for (; i < n; ++i) lanes[i % kLanes] += x[i];
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

template <class W>
void vector_by(const float* x, const W* w, std::size_t stride, std::size_t in, std::size_t out, float* __restrict y) {
  const auto number = [](W v) { return static_cast<float>(v); };
  for (std::size_t j = 0; j < out; ++j) y[j] = 0;
  std::size_t i = 0;
  for (; i + 4 <= in; i += 4, w += 4 * stride) {
    const float a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
    const W *p = w, *q = w + stride, *r = q + stride, *s = r + stride;
    for (std::size_t j = 0; j < out; ++j)
      y[j] += (a * number(p[j]) + b * number(q[j])) + (c * number(r[j]) + d * number(s[j]));
  }
  for (; i < in; ++i, w += stride) {
    const float a = x[i];
    for (std::size_t j = 0; j < out; ++j) y[j] += a * number(w[j]);
  }
}

constexpr ChannelLoops kLoops = {add_rows, max_rows, scale_rows, scale, sum, vector_by<float>, vector_by<std::int8_t>};

}  // namespace
}  // namespace modelflow::cpu
