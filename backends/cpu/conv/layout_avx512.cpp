// Copies of image data: transpositions of channels and pixels, and parts of images with their padding.
#include "backends/cpu/conv/layout_avx512.h"

#include <cstring>

#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// 16 rows of 16 floats; the classic four rounds of exchanging halves.
MODELFLOW_INLINE void transpose16(__m512 (&r)[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 2]);
    const __m512d c = _mm512_castps_pd(t[4 * i + 1]), d = _mm512_castps_pd(t[4 * i + 3]);
    r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
    r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

__mmask16 lanes(std::int64_t n) { return n >= 16 ? 0xffff : static_cast<__mmask16>((1u << n) - 1); }

void transpose_block(const float* x, std::int64_t x_step, float* y, std::int64_t y_step, std::int64_t rows,
                     std::int64_t columns) {
  __m512 r[16];
  const __mmask16 in = lanes(columns), out = lanes(rows);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = i < rows ? _mm512_maskz_loadu_ps(in, x + i * x_step) : _mm512_setzero_ps();
  transpose16(r);
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) {
    if (j < columns) _mm512_mask_storeu_ps(y + j * y_step, out, r[j]);
  }
}

void zero(float* to, std::int64_t n) {
  if (n > 0) std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(float));
}

std::int64_t clamp(std::int64_t v, std::int64_t high) { return v < 0 ? 0 : v > high ? high : v; }

/// Columns [from, to) of a band row have a counterpart in x, the others are padding.
struct Inside {
  std::int64_t from, to;
};

Inside inside(const ConvProblem& p, const BandShape& s) {
  const std::int64_t from = s.first_column >= 0 ? 0 : (-s.first_column + s.step_w - 1) / s.step_w;
  const std::int64_t room = p.width - s.first_column;
  const std::int64_t to = room <= 0 ? 0 : (room + s.step_w - 1) / s.step_w;
  const Inside in{clamp(from, s.columns), clamp(to, s.columns)};
  return in.from < in.to ? in : Inside{0, 0};
}

/// One row of channels-last pixels from channels-last x.
void copy_last(const ConvProblem& p, const BandShape& s, const float* x, Inside in, std::int64_t pixel, float* to) {
  const float* from = x + (s.first_column + in.from * s.step_w) * p.channels;
  to += in.from * pixel;
  const auto bytes = static_cast<std::size_t>(p.channels) * sizeof(float);
  if (pixel == p.channels && s.step_w == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(in.to - in.from) * bytes);
    return;
  }
  for (std::int64_t i = in.from; i < in.to; ++i, to += pixel, from += s.step_w * p.channels)
    std::memcpy(to, from, bytes);
}

/// One row from channels-second x (`x` points to its row in the first channel).
void copy_first(const ConvProblem& p, const BandShape& s, const float* x, Inside in, std::int64_t pixel, float* to) {
  const std::int64_t plane = p.height * p.width;
  const float* from = x + s.first_column + in.from * s.step_w;
  to += in.from * pixel;
  if (s.step_w == 1) return transpose_avx512(from, plane, to, pixel, p.channels, in.to - in.from);
  for (std::int64_t i = in.from; i < in.to; ++i, to += pixel, from += s.step_w) {
    for (std::int64_t c = 0; c < p.channels; ++c) to[c] = from[c * plane];
  }
}

/// One row of one channel, pixels next to each other.
void copy_plane(const BandShape& s, const float* x, Inside in, float* to) {
  const float* from = x + s.first_column + in.from * s.step_w;
  if (s.step_w == 1) {
    std::memcpy(to + in.from, from, static_cast<std::size_t>(in.to - in.from) * sizeof(float));
    return;
  }
  for (std::int64_t i = in.from; i < in.to; ++i, from += s.step_w) to[i] = *from;
}

}  // namespace

void transpose_avx512(const float* x, std::int64_t x_step, float* y, std::int64_t y_step, std::int64_t rows,
                      std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; j += 16) {
    for (std::int64_t i = 0; i < rows; i += 16)
      transpose_block(x + i * x_step + j, x_step, y + j * y_step + i, y_step, rows - i, columns - j);
  }
}

Band copy_band_avx512(const ConvProblem& p, const ConvBlock& block, const BandShape& s, std::int64_t pixel, float* to) {
  const Inside in = inside(p, s);
  const std::int64_t size = p.height * p.width;
  const bool planes = pixel == 1 && !p.x_last;
  const std::int64_t copies = planes ? p.channels : 1;
  const std::int64_t row = s.columns * pixel, plane = s.rows * row;
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (std::int64_t i = 0; i < s.rows; ++i) {
      float* at = to + copy * plane + i * row;
      const std::int64_t h = s.first_row + i * s.step_h;
      if (h < 0 || h >= p.height || in.from == in.to) {
        zero(at, row);
        continue;
      }
      zero(at, in.from * pixel);
      zero(at + in.to * pixel, (s.columns - in.to) * pixel);
      const float* image = p.x + block.image * size * p.channels;
      if (planes) {
        copy_plane(s, image + copy * size + h * p.width, in, at);
      } else if (p.x_last) {
        copy_last(p, s, image + h * p.width * p.channels, in, pixel, at);
      } else {
        copy_first(p, s, image + h * p.width, in, pixel, at);
      }
    }
  }
  return {to, row, pixel, planes ? plane : 0};
}

void finish_avx512(const ConvProblem& p, float* y, const float* added, std::int64_t n) {
  const bool before = p.residual == ops::Residual::before, after = p.residual == ops::Residual::after;
  with_activation(p.activation, [=](auto f) {
    for (std::int64_t i = 0; i < n; i += 16) {
      const __mmask16 mask = lanes(n - i);
      __m512 v = _mm512_maskz_loadu_ps(mask, y + i);
      if (before) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, added + i));
      v = f(v);
      if (after) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, added + i));
      _mm512_mask_storeu_ps(y + i, mask, v);
    }
  });
}

}  // namespace modelflow::cpu
