// The loops of resize.h, written over vectors (see vector.h).
#pragma once

#include "backends/cpu/loops/resize.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

MODELFLOW_INLINE Ints load_ints(const std::int32_t* from) {
  Ints x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}

/// x[i], lane by lane, from memory.
MODELFLOW_INLINE Floats gathered(const float* x, Ints i) {
#if defined(__AVX512F__)
  return _mm512_i32gather_ps(reinterpret_cast<__m512i>(i), x, sizeof(float));
#elif defined(__AVX2__)
  return _mm256_i32gather_ps(x, reinterpret_cast<__m256i>(i), sizeof(float));
#else
  return Floats{x[i[0]], x[i[1]], x[i[2]], x[i[3]]};
#endif
}

/// One channel: as many pixels as a vector has lanes at once. Lists are padded, so that whole vectors of them are read.
template <std::size_t count>
MODELFLOW_INLINE void across_pixels(const float* x, const Taps& taps, std::size_t first, std::size_t end, float* y) {
  vectors(end - first, [&](std::size_t i, auto part) {
    Floats sum = {};
#pragma GCC unroll 4
    for (std::size_t t = 0; t < count; ++t) {
      const std::size_t at = t * taps.stride + first + i;
      const Floats product = load(taps.weight + at) * gathered(x, load_ints(taps.index + at));
      sum = t == 0 ? product : sum + product;
    }
    store(y + i, sum, part);
  });
}

template <std::size_t count>
MODELFLOW_INLINE void across_channels(const float* x, const Taps& taps, std::size_t first, std::size_t end,
                                      std::size_t channels, float* y) {
  for (std::size_t p = first; p < end; ++p, y += channels) {
    const float* from[count];
    Floats weight[count];
#pragma GCC unroll 4
    for (std::size_t t = 0; t < count; ++t) {
      from[t] = x + static_cast<std::size_t>(taps.index[t * taps.stride + p]) * channels;
      weight[t] = all(taps.weight[t * taps.stride + p]);
    }
    vectors(channels, [&](std::size_t c, auto part) {
      Floats sum = weight[0] * load(from[0] + c, part);
#pragma GCC unroll 4
      for (std::size_t t = 1; t < count; ++t) sum += weight[t] * load(from[t] + c, part);
      store(y + c, sum, part);
    });
  }
}

template <std::size_t count>
MODELFLOW_INLINE void across_by(const float* x, const Taps& taps, std::size_t first, std::size_t end,
                                std::size_t channels, float* y) {
  channels == 1 ? across_pixels<count>(x, taps, first, end, y)
                : across_channels<count>(x, taps, first, end, channels, y);
}

MODELFLOW_FLAT void across(const float* x, const Taps& taps, std::size_t first, std::size_t end, std::size_t channels,
                           float* y) {
  taps.count == 2 ? across_by<2>(x, taps, first, end, channels, y) : across_by<4>(x, taps, first, end, channels, y);
}

template <std::size_t count>
MODELFLOW_INLINE void between_lines(const float* const* lines, const float* weight, std::size_t n, float* y) {
  const float* from[count];
  Floats by[count];
#pragma GCC unroll 4
  for (std::size_t t = 0; t < count; ++t) from[t] = lines[t], by[t] = all(weight[t]);
  vectors(n, [&](std::size_t i, auto part) {
    Floats sum = by[0] * load(from[0] + i, part);
#pragma GCC unroll 4
    for (std::size_t t = 1; t < count; ++t) sum += by[t] * load(from[t] + i, part);
    store(y + i, sum, part);
  });
}

MODELFLOW_FLAT void between(const float* const* lines, const float* weight, std::size_t count, std::size_t n,
                            float* y) {
  count == 2 ? between_lines<2>(lines, weight, n, y) : between_lines<4>(lines, weight, n, y);
}

}  // namespace
}  // namespace modelflow::cpu
