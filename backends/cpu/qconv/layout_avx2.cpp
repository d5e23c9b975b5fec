// Copies of 8-bit image data: transpositions of channels and pixels, and parts of images with their padding.
#include <immintrin.h>

#include <cstring>

#include "backends/cpu/qconv/layout.h"

namespace modelflow::cpu {
namespace {

std::int64_t clamp(std::int64_t v, std::int64_t high) { return v < 0 ? 0 : v > high ? high : v; }

/// For bytes 16 * `part` .. of interleaved pixels of three channels: where they come from in 16 bytes of plane `c`.
__m128i order_of(int part, int c) {
  alignas(16) std::int8_t order[16];
  for (int i = 0; i < 16; ++i) {
    const int at = 16 * part + i;
    order[i] = static_cast<std::int8_t>(at % 3 == c ? at / 3 : -1);
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(order));
}

/// Three planes to packed pixels: RGB images in front of the first convolution.
void interleave3(const std::uint8_t* x, std::int64_t plane, std::int64_t pixels, std::uint8_t* to) {
  __m128i order[3][3];
  for (int part = 0; part < 3; ++part) {
    for (int c = 0; c < 3; ++c) order[part][c] = order_of(part, c);
  }
  std::int64_t i = 0;
  for (; i + 16 <= pixels; i += 16, to += 48) {
    __m128i in[3];
    for (int c = 0; c < 3; ++c) in[c] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + c * plane + i));
    for (int part = 0; part < 3; ++part) {
      const __m128i two =
          _mm_or_si128(_mm_shuffle_epi8(in[0], order[part][0]), _mm_shuffle_epi8(in[1], order[part][1]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * part),
                       _mm_or_si128(two, _mm_shuffle_epi8(in[2], order[part][2])));
    }
  }
  for (; i < pixels; ++i, to += 3) {
    for (int c = 0; c < 3; ++c) to[c] = x[c * plane + i];
  }
}

/// Pixels of one row, `step` columns apart in x.
void copy_pixels(const ConvGeometry& g, const std::uint8_t* x, std::int64_t plane, std::int64_t step,
                 std::int64_t pixels, std::uint8_t* to) {
  if (g.x_last && step == 1) {
    std::memcpy(to, x, static_cast<std::size_t>(pixels * g.channels));
  } else if (g.x_last) {
    for (std::int64_t i = 0; i < pixels; ++i)
      std::memcpy(to + i * g.channels, x + i * step * g.channels, static_cast<std::size_t>(g.channels));
  } else if (g.channels == 3 && step == 1) {
    interleave3(x, plane, pixels, to);
  } else if (step == 1) {
    transpose_bytes(x, plane, to, g.channels, g.channels, pixels);
  } else {
    for (std::int64_t c = 0; c < g.channels; ++c) {
      for (std::int64_t i = 0; i < pixels; ++i) to[i * g.channels + c] = x[c * plane + i * step];
    }
  }
}

}  // namespace

void copy_band_bytes(const ConvGeometry& g, const std::uint8_t* x, std::int64_t image, const BandShape& s,
                     std::uint8_t zero, std::uint8_t* to) {
  const std::int64_t from = clamp((-s.first_column + s.step_w - 1) / s.step_w, s.columns);
  const std::int64_t room = g.width - s.first_column;
  const std::int64_t past = room <= 0 ? 0 : clamp((room + s.step_w - 1) / s.step_w, s.columns);
  const std::int64_t plane = g.x_last ? 1 : g.height * g.width, pixel = g.x_last ? g.channels : 1;
  x += image * g.height * g.width * g.channels;
  const auto fill = [&](std::uint8_t* at, std::int64_t pixels) {
    if (pixels > 0) std::memset(at, zero, static_cast<std::size_t>(pixels * g.channels));
  };
  for (std::int64_t r = 0; r < s.rows; ++r, to += s.columns * g.channels) {
    const std::int64_t row = s.first_row + r * s.step_h;
    if (row < 0 || row >= g.height || from >= past) {
      fill(to, s.columns);
      continue;
    }
    fill(to, from);
    copy_pixels(g, x + (row * g.width + s.first_column + from * s.step_w) * pixel, plane, s.step_w, past - from,
                to + from * g.channels);
    fill(to + past * g.channels, s.columns - past);
  }
}

void transpose_bytes(const std::uint8_t* x, std::int64_t x_step, std::uint8_t* y, std::int64_t y_step,
                     std::int64_t rows, std::int64_t columns) {
  for (std::int64_t first = 0; first < columns; first += 64) {  // reads whole cache lines, row after row
    const std::int64_t last = first + 64 < columns ? first + 64 : columns;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = first; j < last; ++j) y[j * y_step + i] = x[i * x_step + j];
    }
  }
}

}  // namespace modelflow::cpu
