// Loops over bytes in plain C++ that compilers vectorize. Internal linkage and nothing of the standard library on
// purpose: each including file is compiled for another instruction set, and the linker must not mix them.
#pragma once

#include "backends/cpu/loops/bytes.h"

namespace modelflow::cpu {
namespace {

/// Half to even for numbers up to 2^22: what is added leaves no bits for a fraction.
float rounded(float x) {
  constexpr float kNoFraction = 12582912;  // 1.5 * 2^23
  return (x + kNoFraction) - kNoFraction;
}

/// x + zero, rounded and saturated.
std::uint8_t byte(float x, std::int32_t zero) {
  const auto z = static_cast<float>(zero);
  x = x > -z ? x : -z;
  x = x < 255 - z ? x : 255 - z;
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(rounded(x) + z));
}

void max_window(const ByteWindow& w, std::uint8_t* __restrict y) {
  for (std::size_t c = 0; c < w.channels; ++c) y[c] = 0;
  for (std::size_t h = 0; h < w.high; ++h) {
    const std::uint8_t* x = w.x + h * w.line;
    for (std::size_t i = 0; i < w.wide; ++i, x += w.channels)
      for (std::size_t c = 0; c < w.channels; ++c) y[c] = y[c] > x[c] ? y[c] : x[c];
  }
}

void add_rows(const std::uint8_t* x, std::size_t rows, std::size_t stride, std::size_t channels,
              std::uint32_t* __restrict sum) {
  for (std::size_t r = 0; r < rows; ++r, x += stride)
    for (std::size_t c = 0; c < channels; ++c) sum[c] += x[c];
}

std::uint64_t sum(const std::uint8_t* x, std::size_t n) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += x[i];
  return total;
}

void rescale_rows(const Rescale& r, const std::uint8_t* x, const float* factor, std::size_t rows, std::size_t channels,
                  std::uint8_t* __restrict y) {
  for (std::size_t row = 0; row < rows; ++row, x += channels, y += channels)
    for (std::size_t c = 0; c < channels; ++c) y[c] = byte(static_cast<float>(x[c] - r.x_zero) * factor[c], r.y_zero);
}

void rescale(const Rescale& r, const std::uint8_t* x, float factor, std::size_t n, std::uint8_t* __restrict y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = byte(static_cast<float>(x[i] - r.x_zero) * factor, r.y_zero);
}

void quantize(const Quantization& q, const float* x, std::size_t n, std::uint8_t* __restrict y) {
  const float inverse = 1 / q.scale;
  for (std::size_t i = 0; i < n; ++i) y[i] = byte(x[i] * inverse, q.zero);
}

void dequantize(const Quantization& q, const std::uint8_t* x, std::size_t n, float* __restrict y) {
  for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] - q.zero) * q.scale;
}

constexpr std::size_t kBlock = 64;  // pixels

void quantize_last(const Quantization& q, const Planes& p, const float* x, std::uint8_t* y) {
  std::uint8_t block[kBlock];
  for (std::size_t at = p.begin; at < p.end; at += kBlock) {
    const std::size_t n = p.end - at < kBlock ? p.end - at : kBlock;
    for (std::size_t c = 0; c < p.channels; ++c) {
      quantize(q, x + c * p.pixels + at, n, block);
      for (std::size_t i = 0; i < n; ++i) y[(at + i) * p.channels + c] = block[i];
    }
  }
}

void dequantize_second(const Quantization& q, const Planes& p, const std::uint8_t* x, float* y) {
  std::uint8_t block[kBlock];
  for (std::size_t at = p.begin; at < p.end; at += kBlock) {
    const std::size_t n = p.end - at < kBlock ? p.end - at : kBlock;
    for (std::size_t c = 0; c < p.channels; ++c) {
      for (std::size_t i = 0; i < n; ++i) block[i] = x[(at + i) * p.channels + c];
      dequantize(q, block, n, y + c * p.pixels + at);
    }
  }
}

// (a - a_zero) * a_scale / y_scale + ..., the zero points gathered in one number.
void add(const ByteSum& s, const std::uint8_t* a, const std::uint8_t* b, std::size_t n, std::uint8_t* __restrict y) {
  const float fa = s.a.scale / s.y.scale, fb = s.b.scale / s.y.scale;
  const float rest = -(static_cast<float>(s.a.zero) * fa + static_cast<float>(s.b.zero) * fb);
  const float least = s.relu ? 0 : -256;
  for (std::size_t i = 0; i < n; ++i) {
    const float x = static_cast<float>(a[i]) * fa + static_cast<float>(b[i]) * fb + rest;
    y[i] = byte(x > least ? x : least, s.y.zero);
  }
}

constexpr ByteLoops kLoops = {max_window, add_rows,   sum,           rescale_rows,      rescale,
                              quantize,   dequantize, quantize_last, dequantize_second, add};

}  // namespace
}  // namespace modelflow::cpu
