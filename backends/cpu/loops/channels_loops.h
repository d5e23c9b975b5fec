// The loops of channels.h, written over vectors (see vector.h).
#pragma once

#include <limits>

#include "backends/cpu/loops/channels.h"
#include "backends/cpu/vector/convert.h"
#include "backends/cpu/vector/transpose.h"

namespace modelflow::cpu {
namespace {

template <std::size_t Rows>
MODELFLOW_INLINE void add_some(const float* x, std::size_t channels, float* sum) {
  vectors(channels, [&](std::size_t i, auto part) {
    Floats all_rows = load(x + i, part);
    for (std::size_t r = 1; r < Rows; ++r) all_rows += load(x + r * channels + i, part);
    store(sum + i, load(sum + i, part) + all_rows, part);
  });
}

MODELFLOW_FLAT void add_rows(const float* x, std::size_t rows, std::size_t channels, float* sum) {
  for (; rows >= 4; rows -= 4, x += 4 * channels) add_some<4>(x, channels, sum);
  if (rows == 3) add_some<3>(x, channels, sum);
  if (rows == 2) add_some<2>(x, channels, sum);
  if (rows == 1) add_some<1>(x, channels, sum);
}

/// best[c] = the larger one of it and x[r, c] over all rows, NaN where there is one.
template <class T>
MODELFLOW_FLAT void largest_rows(const T* x, std::size_t rows, std::size_t stride, std::size_t channels, float* best) {
  vectors(channels, [&](std::size_t c, auto part) {
    Floats b = load(best + c, part);
    for (std::size_t r = 0; r < rows; ++r) b = maximum(b, load(x + r * stride + c, part));
    store(best + c, b, part);
  });
}

/// y[i, c] = last(start joined with all x[r, c] of window i, one after the other).
template <class Join, class Last>
MODELFLOW_INLINE void join_windows(Windows<float> w, float start, float* y, Join join, Last last) {
  for (; w.count > 0; --w.count, w.x += w.step, y += w.channels) {
    vectors(w.channels, [&](std::size_t c, auto part) {
      Floats joined = all(start);
      for (std::size_t d = 0; d < w.deep; ++d) {
        const float* row = w.x + d * w.plane + c;
        for (std::size_t h = 0; h < w.high; ++h, row += w.line)
          for (std::size_t i = 0; i < w.wide; ++i) joined = join(joined, load(row + i * w.channels, part));
      }
      store(y + c, last(joined), part);
    });
  }
}

MODELFLOW_FLAT void max_windows(const Windows<float>& windows, float* y) {
  const auto larger = [](Floats a, Floats b) { return maximum(a, b); };
  join_windows(windows, -std::numeric_limits<float>::infinity(), y, larger, [](Floats x) { return x; });
}

MODELFLOW_FLAT void mean_windows(const Windows<float>& windows, float count, float* y) {
  const auto sum = [](Floats a, Floats b) { return a + b; };
  join_windows(windows, 0, y, sum, [by = all(count)](Floats x) { return x / by; });
}

// x may be y. x * (1 + factor) would keep an infinity that x + x * 0 makes NaN.
template <class Factor>
MODELFLOW_INLINE void scale_row(const float* x, bool skip, std::size_t n, float* y, Factor factor) {
  if (skip) {
    vectors(n, [&](std::size_t i, auto part) {
      const Floats v = load(x + i, part);
      store(y + i, v + v * factor(i, part), part);
    });
  } else {
    vectors(n, [&](std::size_t i, auto part) { store(y + i, load(x + i, part) * factor(i, part), part); });
  }
}

MODELFLOW_FLAT void scale_rows(const float* x, const float* factor, bool skip, std::size_t rows, std::size_t channels,
                               float* y) {
  for (std::size_t r = 0; r < rows; ++r, x += channels, y += channels)
    scale_row(x, skip, channels, y, [&](std::size_t i, auto part) { return load(factor + i, part); });
}

MODELFLOW_FLAT void scale(const float* x, float factor, bool skip, std::size_t n, float* y) {
  scale_row(x, skip, n, y, [&](std::size_t, auto) { return all(factor); });
}

MODELFLOW_FLAT float sum(const float* x, std::size_t n) {
  Floats sums[4] = {};
  vectors_by_four(n, [&](std::size_t i, auto part, std::size_t v) { sums[v] += load(x + i, part); });
  return sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// Four columns of vectors of two rows at once, since every sum waits for the one before.
template <class W>
MODELFLOW_FLAT void vector_by(const float* x, const W* w, std::size_t in, float* y) {
  constexpr std::size_t kPanel = ChannelLoops::kPanel, kStep = 4 * kLanes;
  for (std::size_t c = 0; c < kPanel; c += kStep) {
    Floats even[4] = {}, odd[4] = {};
    std::size_t i = 0;
    for (; i + 2 <= in; i += 2) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < 4; ++v) {
        const W* at = w + i * kPanel + c + v * kLanes;
        even[v] += x[i] * load(at);
        odd[v] += x[i + 1] * load(at + kPanel);
      }
    }
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) {
      if (i < in) even[v] += x[i] * load(w + i * kPanel + c + v * kLanes);
      store(y + c + v * kLanes, even[v] + odd[v]);
    }
  }
}

MODELFLOW_FLAT void to_bf16(const float* x, std::size_t n, std::uint16_t* y) {
  vectors(n, [&](std::size_t i, auto part) { store(y + i, load(x + i, part), part); });
}

MODELFLOW_FLAT void from_bf16(const std::uint16_t* x, std::size_t n, float* y) {
  vectors(n, [&](std::size_t i, auto part) { store(y + i, load(x + i, part), part); });
}

}  // namespace
}  // namespace modelflow::cpu
