// QConv in plain C++: exact, not fast, in any layout and number of spatial axes.
#include <algorithm>
#include <cmath>

#include "backends/cpu/qconv/kernels.h"
#include "backends/cpu/qconv/problem.h"

namespace modelflow::cpu {
namespace {

/// Filters that are summed at once.
constexpr std::int64_t kBlock = 16;

// Where things lie. Spatial axes are counted from 0; steps are in elements.
struct Layout {
  std::int64_t channels, filters, group;  // per group
  std::int64_t x_channel, y_channel;      // from channel to channel
  Dims x, y, x_step, y_step;              // extents and steps of the spatial axes
  std::int64_t x_image, y_image;
};

Layout layout_of(const ops::ConvAttrs& conv, const QConvOperands& o) {
  const std::size_t rank = conv.rank();
  Layout l{};
  const std::int64_t channels = o.x_dims[conv.x_last ? rank + 1 : 1], filters = o.y_dims[conv.y_last ? rank + 1 : 1];
  l.group = conv.group, l.channels = channels / conv.group, l.filters = filters / conv.group;
  l.x.assign(o.x_dims.begin() + (conv.x_last ? 1 : 2), o.x_dims.end() - (conv.x_last ? 1 : 0));
  l.y.assign(o.y_dims.begin() + (conv.y_last ? 1 : 2), o.y_dims.end() - (conv.y_last ? 1 : 0));
  const auto steps = [rank](const Dims& extents, std::int64_t pixel) {
    Dims step(rank, pixel);
    for (std::size_t axis = rank - 1; axis > 0; --axis) step[axis - 1] = step[axis] * extents[axis];
    return step;
  };
  l.x_step = steps(l.x, conv.x_last ? channels : 1), l.y_step = steps(l.y, conv.y_last ? filters : 1);
  l.x_channel = conv.x_last ? 1 : l.x_step[0] * l.x[0], l.y_channel = conv.y_last ? 1 : l.y_step[0] * l.y[0];
  l.x_image = element_count(l.x) * channels, l.y_image = element_count(l.y) * filters;
  return l;
}

// [M, C, kernel] to [group, block of filters, tap, channel, filter of the block].
void pack(const std::int8_t* w, const Layout& l, std::int64_t taps, std::int16_t* to) {
  for (std::int64_t g = 0; g < l.group; ++g) {
    for (std::int64_t first = 0; first < l.filters; first += kBlock) {
      for (std::int64_t i = 0; i < taps * l.channels; ++i) {
        const std::int64_t tap = i / l.channels, c = i % l.channels;
        for (std::int64_t f = first; f < first + kBlock; ++f)
          *to++ = f < l.filters ? w[((g * l.filters + f) * l.channels + c) * taps + tap] : std::int16_t{0};
      }
    }
  }
}

std::size_t packed_bytes(const Layout& l, std::int64_t taps) {
  return static_cast<std::size_t>(l.group * ceil_div(l.filters, kBlock) * kBlock * taps * l.channels) *
         sizeof(std::int16_t);
}

class Any : public Implementation {
 public:
  explicit Any(const Call& call) : node_(call), taps_(element_count(node_.attrs.conv.kernel)) {}

  void run(Invocation& call) const override {
    const QConvOperands o = node_.operands(call);
    if (element_count(o.y_dims) == 0) return;
    const Layout l = layout_of(node_.attrs.conv, o);
    // Packed in each run: this kernel takes weights that are not constant, and the machines that need it are slow.
    auto* weights = reinterpret_cast<std::int16_t*>(call.scratch(packed_bytes(l, taps_)));
    pack(o.w, l, taps_, weights);
    const std::int64_t rows = o.y_dims[0] * l.y[0];
    const auto body = [&](std::size_t i) {
      const auto row = static_cast<std::int64_t>(i);
      run_row(o, l, weights, row / l.y[0], row % l.y[0]);
    };
    call.parallel(static_cast<std::size_t>(rows), body);
  }

 private:
  // Offset in x of a tap, seen from the image; -1 in the padding.
  std::int64_t tap_at(const Layout& l, const Dims& at, std::int64_t tap) const {
    const ops::ConvAttrs& conv = node_.attrs.conv;
    std::int64_t offset = 0;
    for (std::size_t axis = conv.rank(); axis-- > 0; tap /= conv.kernel[axis]) {
      const std::int64_t i =
          at[axis] * conv.strides[axis] - conv.pads[axis] + tap % conv.kernel[axis] * conv.dilations[axis];
      if (i < 0 || i >= l.x[axis]) return -1;
      offset += i * l.x_step[axis];
    }
    return offset;
  }

  // All results whose first spatial index is `first`.
  void run_row(const QConvOperands& o, const Layout& l, const std::int16_t* weights, std::int64_t image,
               std::int64_t first) const {
    Dims at(l.y.size(), 0), taps(static_cast<std::size_t>(taps_));
    at[0] = first;
    const std::int64_t pixels = element_count(l.y) / l.y[0];
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      std::int64_t rest = pixel, to = image * l.y_image + first * l.y_step[0];
      for (std::size_t axis = l.y.size(); axis-- > 1; rest /= l.y[axis]) {
        at[axis] = rest % l.y[axis];
        to += at[axis] * l.y_step[axis];
      }
      for (std::int64_t tap = 0; tap < taps_; ++tap) taps[static_cast<std::size_t>(tap)] = tap_at(l, at, tap);
      run_pixel(o, l, weights, o.x + image * l.x_image, taps, to);
    }
  }

  void run_pixel(const QConvOperands& o, const Layout& l, const std::int16_t* w, const std::uint8_t* x,
                 const Dims& taps, std::int64_t to) const {
    const std::int64_t step = kBlock * l.channels;
    for (std::int64_t g = 0; g < l.group; ++g, x += l.channels * l.x_channel) {
      for (std::int64_t first = 0; first < l.filters; first += kBlock) {
        std::int32_t sums[kBlock] = {};
        for (const std::int64_t tap : taps) {
          if (tap >= 0) add_products(x + tap, l, w, sums);
          w += step;
        }
        for (std::int64_t f = first; f < std::min(l.filters, first + kBlock); ++f) {
          const std::int64_t filter = g * l.filters + f;
          finish(o, filter, sums[f - first], to + filter * l.y_channel);
        }
      }
    }
  }

  void add_products(const std::uint8_t* x, const Layout& l, const std::int16_t* w, std::int32_t (&sums)[kBlock]) const {
    for (std::int64_t c = 0; c < l.channels; ++c, w += kBlock) {
      const std::int32_t value = x[c * l.x_channel] - node_.attrs.x.zero_point;
      for (std::int64_t f = 0; f < kBlock; ++f) sums[f] += value * w[f];
    }
  }

  void finish(const QConvOperands& o, std::int64_t filter, std::int32_t sum, std::int64_t to) const {
    const QEpilogue& e = node_.epilogue;
    float v = static_cast<float>(sum + o.bias[filter]) * (node_.attrs.x.scale * o.w_scale[filter]);
    const float added = o.added ? static_cast<float>(o.added[to] - e.added.zero_point) * e.added.scale : 0;
    if (e.residual == ops::Residual::before) v += added;
    v = activate(e.activation, v);
    if (e.residual == ops::Residual::after) v += added;
    const float q = std::nearbyint(v / e.y.scale) + static_cast<float>(e.y.zero_point);
    o.y[to] = static_cast<std::uint8_t>(std::min(255.0f, std::max(0.0f, q)));
  }

  QConvNode node_;
  std::int64_t taps_;
};

}  // namespace

const Kernel qconv_any = {
    .op = "QConv",
    .name = "cpu.qconv_any",
    .needs = Isa::avx2,
    .accepts = accepts_qconv,
    .cost = [](const Call& call, const Target& target) { return qconv_cost(call, target, 0.02); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Any>(call);
    },
};

}  // namespace modelflow::cpu
