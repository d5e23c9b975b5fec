// Copies of image data into the order that convolutions over vectors work in: transpositions of channels and pixels,
// and parts of images with their padding. For files named so, see vector.h.
#pragma once

#include <cstring>

#include "backends/cpu/conv/band.h"
#include "backends/cpu/conv/late_residual.h"
#include "backends/cpu/vector/activation.h"
#include "backends/cpu/vector/transpose.h"

namespace modelflow::cpu {
namespace {

/// A part of x with its zero padding around it. Pixels of one row are `pixel` floats apart, rows `row` floats; channels
/// are consecutive, or `plane` floats apart when `plane` is not 0.
struct Band {
  const float* data;
  std::int64_t row, pixel, plane;
};

void zero(float* to, std::int64_t n) {
  if (n > 0) std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(float));
}

std::int64_t clamp(std::int64_t v, std::int64_t high) { return v < 0 ? 0 : v > high ? high : v; }

/// Columns [from, to) of a band row have a counterpart in x, the others are padding.
struct BandColumns {
  std::int64_t from, to;
};

BandColumns columns_inside(const ConvProblem& p, const BandShape& s) {
  const std::int64_t from = s.first_column >= 0 ? 0 : (-s.first_column + s.step_w - 1) / s.step_w;
  const std::int64_t room = p.width - s.first_column;
  const std::int64_t to = room <= 0 ? 0 : (room + s.step_w - 1) / s.step_w;
  const BandColumns in{clamp(from, s.columns), clamp(to, s.columns)};
  return in.from < in.to ? in : BandColumns{0, 0};
}

/// One row of channels-last pixels from channels-last x.
void copy_last(const ConvProblem& p, const BandShape& s, const float* x, BandColumns in, std::int64_t pixel,
               float* to) {
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
void copy_first(const ConvProblem& p, const BandShape& s, const float* x, BandColumns in, std::int64_t pixel,
                float* to) {
  const std::int64_t plane = p.height * p.width;
  const float* from = x + s.first_column + in.from * s.step_w;
  to += in.from * pixel;
  if (s.step_w == 1) {
    return transpose(from, static_cast<std::size_t>(plane), to, static_cast<std::size_t>(pixel),
                     static_cast<std::size_t>(p.channels), static_cast<std::size_t>(in.to - in.from));
  }
  for (std::int64_t i = in.from; i < in.to; ++i, to += pixel, from += s.step_w) {
    for (std::int64_t c = 0; c < p.channels; ++c) to[c] = from[c * plane];
  }
}

/// One row of one channel, pixels next to each other.
void copy_plane(const BandShape& s, const float* x, BandColumns in, float* to) {
  const float* from = x + s.first_column + in.from * s.step_w;
  if (s.step_w == 1) {
    std::memcpy(to + in.from, from, static_cast<std::size_t>(in.to - in.from) * sizeof(float));
    return;
  }
  for (std::int64_t i = in.from; i < in.to; ++i, from += s.step_w) to[i] = *from;
}

/// Copies the window into `to`: channels last with `pixel` floats per pixel, or one plane per channel (pixel == 1).
Band copy_band(const ConvProblem& p, const ConvBlock& block, const BandShape& s, std::int64_t pixel, float* to) {
  const BandColumns in = columns_inside(p, s);
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

/// Residual and activation of `n` consecutive results of one filter of a convolution.
void finish_results(const ConvProblem& p, std::int64_t filter, float* y, const float* added, std::int64_t n) {
  const ops::Residual residual = p.residual;
  ActivationSpec activation = p.activation;
  if (p.slopes) activation.alpha = p.slopes[filter];
  with_activation(activation, [=](auto f) {
    vectors(static_cast<std::size_t>(n), [=](std::size_t i, auto part) {
      Floats v = load(y + i, part);
      if (residual == ops::Residual::before) v += load(added + i, part);
      v = f(v);
      with_late_residual(residual, [&](auto join) { v = join(v, load(added + i, part)); });
      store(y + i, v, part);
    });
  });
}

}  // namespace
}  // namespace modelflow::cpu
