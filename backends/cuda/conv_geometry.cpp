// Reads extents of convolutions.
#include "backends/cuda/conv_geometry.h"

#include <algorithm>
#include <string>

namespace modelflow::cuda {
namespace {

ImageStrides strides_of(bool last, std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  const std::int64_t area = rows * columns;
  if (last) return {area * channels, 1, columns * channels, channels};
  return {area * channels, area, columns, 1};
}

}  // namespace

Dims read_geometry(const char* op, const ops::ConvAttrs& conv, const Dims& weights, std::span<const std::int64_t> x,
                   ConvLaunch& c) {
  const auto fail = [op](const char* why) { throw Error(ErrorKind::invalid_input, std::string(op) + ": " + why); };
  const std::size_t rank = conv.rank(), last = rank - 1, first = conv.x_last ? 1 : 2;
  if (x.size() != rank + 2) fail("x is not of the rank of the weights");
  const std::int64_t channels = x[conv.x_last ? rank + 1 : 1];
  if (channels != weights[1] * conv.group) fail("x has other channels than the weights");
  Dims y = conv.output_dims(x, weights[0]);
  const std::size_t first_y = conv.y_last ? 1 : 2;
  const auto small = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  c.batch = x[0], c.channels = small(channels), c.filters = small(weights[0]), c.group = small(conv.group);
  c.width = x[first + last], c.columns = y[first_y + last];
  c.kernel_w = small(conv.kernel[last]), c.stride_w = small(conv.strides[last]);
  c.dilation_w = small(conv.dilations[last]), c.left = small(conv.pads[last]);
  c.height = c.rows = c.kernel_h = c.stride_h = c.dilation_h = 1;
  if (rank > 1) {
    c.height = x[first], c.rows = y[first_y], c.kernel_h = small(conv.kernel[0]);
    c.stride_h = small(conv.strides[0]), c.dilation_h = small(conv.dilations[0]), c.top = small(conv.pads[0]);
  }
  c.x_strides = strides_of(conv.x_last, channels, c.height, c.width);
  c.y_strides = strides_of(conv.y_last, weights[0], c.rows, c.columns);
  return y;
}

Verdict accepts_filters(const Operand& w, const ops::ConvAttrs& conv) {
  if (!w.constant) return no("weights are not constant", w.name);
  if (conv.rank() > 2) return no("has " + std::to_string(conv.rank()) + " spatial axes", w.name);
  if (w.constant->rank() != conv.rank() + 2) return no("weights do not fit kernel_shape", w.name);
  if (!std::equal(conv.kernel.begin(), conv.kernel.end(), w.constant->dims().begin() + 2))
    return no("weights do not fit kernel_shape", w.name);
  if (w.constant->elements() == 0) return no("weights are empty", w.name);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // numbers of a filter are counted in 32 bits
  if (w.constant->elements() > kMost) return no("weights are too many", w.name);
  return w.constant->dims()[0] % conv.group == 0 ? yes() : no("group does not divide the filters", w.name);
}

}  // namespace modelflow::cuda
