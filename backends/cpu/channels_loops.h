#pragma once

// Plain loops that compilers vectorize. Internal linkage on purpose: each including file is compiled for another
// instruction set, and the linker must not mix them.

#ifdef __AVX512F__
#include <immintrin.h>
#endif

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

constexpr std::size_t kWide = 16;
typedef float Floats __attribute__((vector_size(kWide * sizeof(float))));

void convert(const float* from, Floats& to) { __builtin_memcpy(&to, from, sizeof to); }

#ifdef __AVX512F__
constexpr std::size_t kOne = 16;
#else
constexpr std::size_t kOne = 4;  // GCC 12 compares what does not fit a register number by number
#endif
typedef float Register __attribute__((vector_size(kOne * sizeof(float))));
typedef std::uint32_t RegisterBits __attribute__((vector_size(kOne * sizeof(float))));
typedef std::uint16_t HalfRegister __attribute__((vector_size(kOne * sizeof(std::uint16_t))));

void load(const float* from, Register& to) { __builtin_memcpy(&to, from, sizeof to); }
void load(const std::uint16_t* from, Register& to) {
  HalfRegister upper;
  __builtin_memcpy(&upper, from, sizeof upper);
  to = reinterpret_cast<Register>(__builtin_convertvector(upper, RegisterBits) << 16);
}

/// best[c] = the larger one of it and x[r, c] over all rows, NaN where there is one.
template <class T>
void largest_rows(const T* x, std::size_t rows, std::size_t stride, std::size_t channels, float* __restrict best) {
  std::size_t c = 0;
  Register b, v;
  for (; c + kOne <= channels; c += kOne) {
    __builtin_memcpy(&b, best + c, sizeof b);
    for (std::size_t r = 0; r < rows; ++r) {
      load(x + r * stride + c, v);
      b = (b > v) | (b != b) ? b : v;
    }
    __builtin_memcpy(best + c, &b, sizeof b);
  }
  for (; c < channels; ++c) {
    for (std::size_t r = 0; r < rows; ++r) {
      float other;
      if constexpr (sizeof(T) == 2)
        other = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[r * stride + c]) << 16);
      else
        other = x[r * stride + c];
      best[c] = best[c] > other || best[c] != best[c] ? best[c] : other;
    }
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

void convert(const std::int8_t* from, Floats& to) {
#ifdef __AVX512F__  // GCC 12 converts one number after the other, whichever way it is told to
  to = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  for (std::size_t i = 0; i < kWide; ++i) to[i] = static_cast<float>(from[i]);
#endif
}

/// Two rows at once, since every sum waits for the one before.
template <class W>
void vector_by(const float* x, const W* w, std::size_t in, float* y) {
  constexpr std::size_t kPanel = ChannelLoops::kPanel, kVectors = kPanel / kWide;
  Floats even[kVectors] = {}, odd[kVectors] = {}, row;
  std::size_t i = 0;
  for (; i + 2 <= in; i += 2, w += 2 * kPanel) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v) {
      convert(w + v * kWide, row);
      even[v] += x[i] * row;
      convert(w + kPanel + v * kWide, row);
      odd[v] += x[i + 1] * row;
    }
  }
#pragma GCC unroll 4
  for (std::size_t v = 0; v < kVectors; ++v) {
    if (i < in) {
      convert(w + v * kWide, row);
      even[v] += x[i] * row;
    }
    even[v] += odd[v];
    __builtin_memcpy(y + v * kWide, &even[v], sizeof even[v]);
  }
}

/// As to_bf16, which would be shared with files compiled for other instruction sets; no branch, for compilers.
void narrow(const float* x, std::size_t n, std::uint16_t* y) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof bits);
    const std::uint32_t rounded = bits + 0x7fffU + (bits >> 16 & 1U), quiet = bits | 0x400000U;
    y[i] = static_cast<std::uint16_t>(((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded) >> 16);
  }
}

void widen(const std::uint16_t* x, std::size_t n, float* y) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(x[i]) << 16;
    __builtin_memcpy(y + i, &bits, sizeof bits);
  }
}

constexpr ChannelLoops kLoops = {add_rows, largest_rows<float>, largest_rows<std::uint16_t>, scale_rows, scale,
                                 sum,      vector_by<float>,    vector_by<std::int8_t>,      narrow,     widen};

}  // namespace
}  // namespace modelflow::cpu
