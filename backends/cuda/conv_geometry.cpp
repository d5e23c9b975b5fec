// Reads extents of convolutions.
#include "backends/cuda/conv_geometry.h"

#include <algorithm>
#include <string>

namespace modelflow::cuda {
namespace {

constexpr std::size_t kMostAxes = 3;  // planes, rows, columns

}  // namespace

Dims read_geometry(const char* op, const ops::ConvAttrs& conv, const Dims& weights, std::span<const std::int64_t> x,
                   ConvLaunch& c) {
  const auto fail = [op](const char* why) { throw Error(ErrorKind::invalid_input, std::string(op) + ": " + why); };
  const std::size_t rank = conv.rank();
  if (x.size() != rank + 2) fail("x is not of the rank of the weights");
  const std::int64_t channels = x[conv.x_last ? rank + 1 : 1], filters = weights[0];
  if (channels != weights[1] * conv.group) fail("x has other channels than the weights");
  Dims y = conv.output_dims(x, filters);
  const auto small = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  c.batch = x[0], c.channels = small(channels), c.filters = small(filters), c.group = small(conv.group);
  std::int64_t x_step = conv.x_last ? channels : 1, y_step = conv.y_last ? filters : 1;
  for (std::size_t i = kMostAxes; i-- > 0;) {
    ConvLaunch::Axis& axis = c.axis[i];
    axis = {1, 1, x_step, y_step, 1, 1, 1, 0};
    if (i + rank >= kMostAxes) {
      const std::size_t own = i + rank - kMostAxes;
      axis = {x[own + (conv.x_last ? 1 : 2)],
              y[own + (conv.y_last ? 1 : 2)],
              x_step,
              y_step,
              small(conv.kernel[own]),
              small(conv.strides[own]),
              small(conv.dilations[own]),
              small(conv.pads[own])};
    }
    x_step *= axis.in, y_step *= axis.out;
  }
  c.x_channel = conv.x_last ? 1 : x_step, c.x_image = conv.x_last ? x_step : x_step * channels;
  c.y_channel = conv.y_last ? 1 : y_step, c.y_image = conv.y_last ? y_step : y_step * filters;
  return y;
}

Verdict accepts_filters(const Operand& w, const ops::ConvAttrs& conv) {
  if (!w.constant) return no("weights are not constant", w.name);
  if (conv.rank() > kMostAxes) return no("has " + std::to_string(conv.rank()) + " spatial axes", w.name);
  if (w.constant->rank() != conv.rank() + 2) return no("weights do not fit kernel_shape", w.name);
  if (!std::equal(conv.kernel.begin(), conv.kernel.end(), w.constant->dims().begin() + 2))
    return no("weights do not fit kernel_shape", w.name);
  if (w.constant->elements() == 0) return no("weights are empty", w.name);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // numbers of a filter are counted in 32 bits
  if (w.constant->elements() > kMost) return no("weights are too many", w.name);
  return w.constant->dims()[0] % conv.group == 0 ? yes() : no("group does not divide the filters", w.name);
}

}  // namespace modelflow::cuda
