// Convolution of float32 by its definition, one result after the other.
#include "backends/cpu/conv/by_definition.h"

namespace modelflow::cpu {
namespace {

/// Where the numbers of an image lie, in elements.
struct Image {
  Dims extents, steps;  // of the spatial axes
  std::int64_t channel, image;

  Image(const Dims& dims, bool last) {
    const std::size_t rank = dims.size() - 2;
    const std::int64_t channels = dims[last ? rank + 1 : 1];
    extents.assign(dims.begin() + (last ? 1 : 2), dims.end() - (last ? 1 : 0));
    steps.assign(rank, last ? channels : 1);
    for (std::size_t axis = rank - 1; axis > 0; --axis) steps[axis - 1] = steps[axis] * extents[axis];
    channel = last ? 1 : steps[0] * extents[0];
    image = element_count(extents) * channels;
  }
};

/// Offsets in x of the positions of the window of pixel `at` of y; -1 in the padding.
Dims taps_of(const ops::ConvAttrs& conv, const Image& x, const Dims& at) {
  Dims taps(static_cast<std::size_t>(element_count(conv.kernel)));
  for (std::size_t tap = 0; tap < taps.size(); ++tap) {
    auto rest = static_cast<std::int64_t>(tap);
    for (std::size_t axis = conv.rank(); axis-- > 0; rest /= conv.kernel[axis]) {
      const std::int64_t i =
          at[axis] * conv.strides[axis] - conv.pads[axis] + rest % conv.kernel[axis] * conv.dilations[axis];
      if (i < 0 || i >= x.extents[axis]) taps[tap] = -1;
      if (taps[tap] >= 0) taps[tap] += i * x.steps[axis];
    }
  }
  return taps;
}

}  // namespace

void conv_by_definition(const PlainConv& p, float* y, Invocation& call) {
  const ops::ConvAttrs& conv = p.conv;
  const Image in(p.x_dims, conv.x_last), out(conv.output_dims(p.x_dims, p.w_dims[0]), conv.y_last);
  const std::int64_t filters = p.w_dims[0], channels = p.w_dims[1], pixels = element_count(out.extents);
  const auto one_pixel = [&](std::int64_t image, std::int64_t pixel) {
    Dims at(conv.rank());
    std::int64_t to = image * out.image;
    for (std::size_t axis = conv.rank(); axis-- > 0; pixel /= out.extents[axis]) {
      at[axis] = pixel % out.extents[axis];
      to += at[axis] * out.steps[axis];
    }
    const Dims taps = taps_of(conv, in, at);
    for (std::int64_t f = 0; f < filters; ++f) {
      const float* x = p.x + image * in.image + f / (filters / conv.group) * channels * in.channel;
      const float* w = p.w + f * channels * std::ssize(taps);
      float sum = p.bias ? p.bias[f] : 0;
      for (std::int64_t c = 0; c < channels; ++c, x += in.channel)
        for (const std::int64_t tap : taps) sum += tap < 0 ? 0 * *w++ : x[tap] * *w++;
      const std::int64_t index = to + f * out.channel;
      if (conv.residual == ops::Residual::before) sum += p.residual[index];
      ActivationSpec activation = p.activation;
      if (p.slopes) activation.alpha = p.slopes[f];
      y[index] = activate(activation, sum);
      if (conv.residual == ops::Residual::after) y[index] += p.residual[index];
      if (conv.residual == ops::Residual::times) y[index] *= p.residual[index];
    }
  };
  call.parallel(static_cast<std::size_t>(p.x_dims[0] * pixels), [&](std::size_t i) {
    one_pixel(static_cast<std::int64_t>(i) / pixels, static_cast<std::int64_t>(i) % pixels);
  });
}

}  // namespace modelflow::cpu
