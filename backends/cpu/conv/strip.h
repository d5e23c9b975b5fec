// Neighbouring results of a convolution whose channels stay apart, or nearly: what is computed at once, and how it is
// finished. For files named so, see vector.h.
#pragma once

#include "backends/cpu/conv/depthwise.h"
#include "backends/cpu/conv/epilogue.h"

namespace modelflow::cpu {
namespace {

/// Some neighbouring results of one row, for all channels. Neighbouring taps are `x_column` floats of x and `w_tap`
/// of the weights apart.
struct Strip {
  const float* x;  ///< first tap of the first result
  const float* w;  ///< that tap's weights
  std::int64_t taps_h, taps_w;
  std::ptrdiff_t x_row, x_column;       ///< from tap to tap
  std::ptrdiff_t x_step;                ///< from a result's first tap to that of the next
  std::ptrdiff_t w_row, w_tap, w_part;  ///< w_part: from one channel of a group to the next
  const float* bias;
  float* y;
  const float* added;
  std::ptrdiff_t y_pixel, y_row;
  std::int64_t channels;
  std::int64_t from, to;  ///< columns of x that exist, counted from the first tap of the first result
};

constexpr std::ptrdiff_t kFloats = kLanes;
constexpr bool kWide = kLanes == 16;  // and masks cost nothing

/// Runs body(c, part) on the vectors of the channels.
template <class Body>
MODELFLOW_INLINE void for_channels(const Strip& s, Body body) {
  const auto channels = static_cast<std::size_t>(s.channels);
  if constexpr (kWide) {
    for (std::size_t c = 0; c < channels; c += kLanes)
      body(static_cast<std::int64_t>(c), Rest(channels - c < kLanes ? channels - c : kLanes));
  } else {
    vectors(channels, [body](std::size_t c, auto part) { body(static_cast<std::int64_t>(c), part); });
  }
}

/// `row`: y_row in a second row of results.
template <int T, class Part>
MODELFLOW_INLINE void store_strip(Floats (&acc)[T], const Strip& s, std::int64_t channel, std::ptrdiff_t row, Part part,
                                  const Epilogue& epilogue) {
  const std::ptrdiff_t offset = channel + row;
  const auto join = [&](auto f) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[t] = f(acc[t], load(s.added + t * s.y_pixel + offset, part));
  };
  if (epilogue.residual == ops::Residual::before) join([](Floats x, Floats added) { return x + added; });
  with_register_activation(epilogue.activation, [&acc](auto f) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[t] = f(acc[t]);
  });
  if (epilogue.activation.kind == Activation::prelu) {
    const Affine<LeakyRelu> f = bend_of(epilogue.activation, epilogue.slopes + channel);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) acc[t] = f(acc[t]);
  }
  if (runs_in_registers(epilogue.activation.kind)) with_late_residual(epilogue.residual, join);
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) store(s.y + t * s.y_pixel + offset, acc[t], part);
}

}  // namespace
}  // namespace modelflow::cpu
