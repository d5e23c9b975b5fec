// Pooling with channels last: every window is a handful of rows of channels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/channel_mean.h"
#include "backends/cpu/channels.h"
#include "backends/cpu/share.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

enum class Mode { max, average, global_average };

Mode mode_of(const Attrs& attrs) {
  const std::string text = attrs.text("mode");
  return text == "max" ? Mode::max : text == "average" ? Mode::average : Mode::global_average;
}

/// One spatial axis; an absent one has extent, kernel and stride 1.
struct Axis {
  std::int64_t in = 1, out = 1, kernel = 1, stride = 1, begin = 0, end = 0;
  std::int64_t first(std::int64_t o) const { return std::max<std::int64_t>(o * stride - begin, 0); }
  std::int64_t last(std::int64_t o) const { return std::min(o * stride - begin + kernel, in); }
  /// Entries that a window counts when padding counts: what of it lies within the padded extent.
  std::int64_t padded(std::int64_t o) const {
    return std::min(o * stride - begin + kernel, in + end) - (o * stride - begin);
  }
};

class Pool : public Implementation {
 public:
  explicit Pool(const Call& call)
      : mode_(mode_of(call.attrs)),
        kernel_(call.attrs.ints("kernel_shape")),
        strides_(call.attrs.ints("strides")),
        pads_(call.attrs.ints("pads")),
        include_(call.attrs.integer("count_include_pad") != 0) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32 || x.dims.size() < 3)
      throw Error(ErrorKind::invalid_input, "Pool: x is not float32 of rank 3 or more");
    if (mode_ == Mode::global_average) return global(x, call);
    const std::size_t spatial = kernel_.size();
    if (x.dims.size() != spatial + 2)
      throw Error(ErrorKind::invalid_input, "Pool: x has rank " + std::to_string(x.dims.size()) + ", the window " +
                                                std::to_string(spatial) + " axes");
    Axis axes[2];
    Dims y(x.dims.begin(), x.dims.end());
    for (std::size_t i = 0; i < spatial; ++i) {
      Axis& axis = axes[2 - spatial + i];
      axis = {x.dims[i + 1], 0, kernel_[i], strides_[i], pads_[i], pads_[i + spatial]};
      const std::int64_t room = axis.in + axis.begin + axis.end - axis.kernel;
      axis.out = y[i + 1] = room < 0 ? 0 : room / axis.stride + 1;
    }
    windows(x, axes[0], axes[1], y, call);
  }

 private:
  static void global(const View& x, Invocation& call) {
    Dims y(x.dims.size(), 1);
    y.front() = x.dims.front();
    y.back() = x.dims.back();
    channel_mean(static_cast<const float*>(x.data), channel_tensor(x.dims, true),
                 static_cast<float*>(call.output(0, y)), call);
  }

  void windows(const View& x, const Axis& h, const Axis& w, const Dims& y, Invocation& call) const {
    auto* to = static_cast<float*>(call.output(0, y));
    const auto channels = static_cast<std::size_t>(y.back());
    const auto lines = static_cast<std::size_t>(y[0] * h.out), width = static_cast<std::size_t>(w.out) * channels;
    if (lines * width == 0) return;
    const auto* from = static_cast<const float*>(x.data);
    const std::size_t work = lines * width * static_cast<std::size_t>(h.kernel * w.kernel);
    const std::size_t parts = std::min(tasks_for(work, call), lines);
    share(call, lines, parts, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t line = begin; line < end; ++line) {
        const std::int64_t n = static_cast<std::int64_t>(line) / h.out, oh = static_cast<std::int64_t>(line) % h.out;
        pool_line(from + static_cast<std::size_t>(n * h.in * w.in) * channels, h, w, oh, channels, to + line * width);
      }
    });
  }

  void pool_line(const float* image, const Axis& h, const Axis& w, std::int64_t oh, std::size_t channels,
                 float* y) const {
    const ChannelLoops& loops = channel_loops();
    for (std::int64_t ow = 0; ow < w.out; ++ow, y += channels) {
      const std::int64_t left = w.first(ow), right = w.last(ow), top = h.first(oh), bottom = h.last(oh);
      const auto columns = static_cast<std::size_t>(std::max<std::int64_t>(right - left, 0));
      std::fill_n(y, channels, mode_ == Mode::max ? -std::numeric_limits<float>::infinity() : 0.0f);
      for (std::int64_t ih = top; ih < bottom; ++ih) {
        const float* row = image + static_cast<std::size_t>(ih * w.in + left) * channels;
        if (mode_ == Mode::max)
          loops.max_rows(row, columns, channels, channels, y);
        else
          loops.add_rows(row, columns, channels, y);
      }
      if (mode_ == Mode::max) continue;
      const std::int64_t valid = static_cast<std::int64_t>(columns) * std::max<std::int64_t>(bottom - top, 0);
      const std::int64_t count = include_ ? h.padded(oh) * w.padded(ow) : valid;
      loops.scale(y, count > 0 ? 1.0f / static_cast<float>(count) : 0.0f, channels, y);
    }
  }

  Mode mode_;
  Ints kernel_, strides_, pads_;
  bool include_;
};

Verdict accepts(const Call& call) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (call.in(0).dtype != DType::f32) return no("is not float32", call.in(0).name);
  if (call.attrs.ints("kernel_shape").size() > 2) return no("more than 2 spatial axes", call.in(0).name);
  return yes();
}

double cost(const Call& call, const Target& target) {
  return 1e-6 + target.stream(6 * call.in(0).shape.known_elements());
}

}  // namespace

const Kernel pool = {
    .op = "Pool",
    .name = "cpu.pool",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<Pool>(call);
    },
};

}  // namespace modelflow::cpu
