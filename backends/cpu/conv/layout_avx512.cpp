// Copies of image data: transpositions of channels and pixels, and parts of images with their padding.
#include "backends/cpu/conv/layout_avx512.h"

#include <cstring>

#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

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
  if (s.step_w == 1) return f32_avx512.transpose(from, plane, to, pixel, p.channels, in.to - in.from);
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
      const __mmask16 mask = first_lanes(static_cast<std::size_t>(n - i));
      __m512 v = _mm512_maskz_loadu_ps(mask, y + i);
      if (before) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, added + i));
      v = f(v);
      if (after) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, added + i));
      _mm512_mask_storeu_ps(y + i, mask, v);
    }
  });
}

}  // namespace modelflow::cpu
