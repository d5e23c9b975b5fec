// Pooling over one to three axes with channels last, of floats, bfloat16 and bytes: every window is a handful of rows
// of channels.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/bf16.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/pixels/channel_mean.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/ops/pool_extent.h"

namespace modelflow::cpu {
namespace {

enum class Mode { max, average, global_average };

Mode mode_of(const CallAttrs& attrs) {
  const std::string text = attrs.text("mode");
  return text == "max" ? Mode::max : text == "average" ? Mode::average : Mode::global_average;
}

constexpr std::size_t kMostAxes = 3;  // planes, rows, columns

/// One spatial axis; an absent one has extent, kernel and stride 1.
struct Axis {
  std::int64_t in = 1, out = 1, kernel = 1, stride = 1, begin = 0, end = 0;
  std::int64_t first(std::int64_t o) const { return std::max<std::int64_t>(o * stride - begin, 0); }
  std::int64_t last(std::int64_t o) const { return std::min(o * stride - begin + kernel, in); }
  /// How many windows from `o` on have the same extent: those that padding cuts stand alone.
  std::int64_t alike(std::int64_t o) const {
    if (o * stride < begin || in - kernel + begin < o * stride) return 1;
    return std::min((in - kernel + begin) / stride + 1, out) - o;
  }
};
using Axes = std::array<Axis, kMostAxes>;

/// The pixels of an axis that one window sees, none where it lies in the padding.
struct Span {
  Span(const Axis& axis, std::int64_t o)
      : first(axis.first(o)), count(std::max<std::int64_t>(axis.last(o) - first, 0)) {}
  std::int64_t first, count;
};

/// f(window, its result) of one after the other.
template <class T, class Result, class F>
void each(const Windows<T>& w, Result* y, F f) {
  for (std::size_t i = 0; i < w.count; ++i)
    f(Windows<T>{w.x + i * w.step, w.deep, w.high, w.wide, w.plane, w.line, w.channels, 1, 0}, y + i * w.channels);
}

/// f(first pixel) of each row of a window.
template <class T, class F>
void each_row(const Windows<T>& w, F f) {
  for (std::size_t d = 0; d < w.deep; ++d)
    for (std::size_t h = 0; h < w.high; ++h) f(w.x + d * w.plane + h * w.line);
}

struct Floats {
  using Element = float;
  using Result = float;
  static constexpr DType dtype = DType::f32;

  static void max(const VectorCode& code, const Windows<float>& w, float* y) { code.channels.max_windows(w, y); }
  static void average(const VectorCode& code, const Windows<float>& w, std::int64_t valid, float* y) {
    // A window of nothing: 0 / 1.
    const auto count = static_cast<float>(std::max<std::int64_t>(valid, 1));
    code.channels.mean_windows(w, count, y);
  }
  static void global(const VectorCode& code, const float* x, const ChannelTensor& t, float* y, Invocation& call) {
    channel_mean(code, x, t, y, call);
  }
};

/// A quotient, as the op says it: a product with the inverse falls on the other side of the steps of bfloat16 too
/// often.
void divide(float* sums, std::size_t n, std::int64_t count) {
  const auto by = static_cast<float>(count);
  for (std::size_t i = 0; i < n; ++i) sums[i] = count > 0 ? sums[i] / by : 0;
}

/// Results in bfloat16, of numbers in it or in float32, computed in float32.
template <class T>
struct Rounded {
  using Element = T;
  using Result = std::uint16_t;
  static constexpr DType dtype = std::is_same_v<T, std::uint16_t> ? DType::bf16 : DType::f32;

  static void max(const VectorCode& code, const Windows<T>& w, std::uint16_t* y) {
    by_block(code, w, -std::numeric_limits<float>::infinity(), 1, y, [&](const T* row, std::size_t n, float* best) {
      if constexpr (dtype == DType::bf16)
        code.channels.max_rows_bf16(row, w.wide, w.channels, n, best);
      else
        code.channels.max_rows(row, w.wide, w.channels, n, best);
    });
  }
  static void average(const VectorCode& code, const Windows<T>& w, std::int64_t valid, std::uint16_t* y) {
    float room[kBlock];
    by_block(code, w, 0, valid, y, [&](const T* row, std::size_t n, float* sum) {
      for (std::size_t i = 0; i < w.wide; ++i)
        code.channels.add_rows(floats(code, row + i * w.channels, n, room), 1, n, sum);
    });
  }
  static void global(const VectorCode& code, const T* x, const ChannelTensor& t, std::uint16_t* y, Invocation& call) {
    const std::size_t count = t.batch * t.channels;
    auto* mean = reinterpret_cast<float*>(call.scratch(count * sizeof(float)));
    if constexpr (sizeof(T) == 2)
      channel_mean(code, widened(code, x, t.size(), call), t, mean, call);
    else
      channel_mean(code, x, t, mean, call);
    round_to_bf16(code, mean, count, y, call);
  }

 private:
  static constexpr std::size_t kBlock = 256;  // channels

  static const float* floats(const VectorCode&, const float* row, std::size_t, float*) { return row; }
  static const float* floats(const VectorCode& code, const std::uint16_t* row, std::size_t n, float* to) {
    code.channels.widen(row, n, to);
    return to;
  }
  /// take(channels of the first pixel of a line of the window, how many, what they come to); `count`: what that is
  /// divided by.
  template <class Take>
  static void by_block(const VectorCode& code, const Windows<T>& windows, float start, std::int64_t count,
                       std::uint16_t* y, Take take) {
    each(windows, y, [&](const Windows<T>& w, std::uint16_t* to) {
      float values[kBlock];
      for (std::size_t c = 0; c < w.channels; c += kBlock) {
        const std::size_t n = std::min(kBlock, w.channels - c);
        std::fill_n(values, n, start);
        each_row(w, [&](const T* row) { take(row + c, n, values); });
        if (count != 1) divide(values, n, count);
        code.channels.narrow(values, n, to + c);
      }
    });
  }
};

struct Bytes {
  using Element = std::uint8_t;
  using Result = std::uint8_t;
  static constexpr DType dtype = DType::u8;

  static void max(const VectorCode& code, const Windows<std::uint8_t>& windows, std::uint8_t* y) {
    each(windows, y, [&](const Windows<std::uint8_t>& w, std::uint8_t* to) { code.bytes.max_window(w, to); });
  }
  static void average(const VectorCode& code, const Windows<std::uint8_t>& windows, std::int64_t valid,
                      std::uint8_t* y) {
    each(windows, y, [&](const Windows<std::uint8_t>& w, std::uint8_t* to) { average_one(code, w, valid, to); });
  }
  static void global(const VectorCode& code, const std::uint8_t* x, const ChannelTensor& t, std::uint8_t* y,
                     Invocation& call) {
    const std::size_t count = t.batch * t.channels;
    auto* mean = reinterpret_cast<float*>(call.scratch(count * sizeof(float)));
    channel_mean(code, x, t, mean, call);
    code.bytes.quantize(kWhole, mean, count, y);
  }

 private:
  static constexpr Quantization kWhole = {1, 0};  // rounds half to even

  static void average_one(const VectorCode& code, const Windows<std::uint8_t>& w, std::int64_t valid, std::uint8_t* y) {
    constexpr std::size_t kBlock = 256;  // channels
    for (std::size_t c = 0; c < w.channels; c += kBlock) {
      const std::size_t n = std::min(kBlock, w.channels - c);
      std::uint32_t sum[kBlock] = {};
      float mean[kBlock];
      each_row(w, [&](const std::uint8_t* row) { code.bytes.add_rows(row + c, w.wide, w.channels, n, sum); });
      for (std::size_t i = 0; i < n; ++i)
        mean[i] = static_cast<float>(sum[i]) / static_cast<float>(std::max<std::int64_t>(valid, 1));
      code.bytes.quantize(kWhole, mean, n, y + c);
    }
  }
};

template <class Type>
class Pool : public Implementation {
  using Element = typename Type::Element;
  using Result = typename Type::Result;

 public:
  Pool(const Call& call, const VectorCode& code)
      : code_(code),
        mode_(mode_of(call)),
        kernel_(CallAttrs(call).ints("kernel_shape")),
        strides_(CallAttrs(call).ints("strides")),
        pads_(CallAttrs(call).ints("pads")),
        ceil_(CallAttrs(call).flag("ceil_mode")),
        include_(CallAttrs(call).flag("count_include_pad")) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != Type::dtype || x.dims.size() < 3)
      throw Error(ErrorKind::invalid_input, "Pool: x is not " + std::string(name(Type::dtype)) + " of rank 3 or more");
    if (mode_ == Mode::global_average) return global(x, call);
    const std::size_t spatial = kernel_.size();
    if (spatial > kMostAxes || x.dims.size() != spatial + 2)
      throw Error(ErrorKind::invalid_input, "Pool: x has rank " + std::to_string(x.dims.size()) + ", the window " +
                                                std::to_string(spatial) + " axes");
    Axes axes;
    Dims y(x.dims.begin(), x.dims.end());
    for (std::size_t i = 0; i < spatial; ++i) {
      Axis& axis = axes[kMostAxes - spatial + i];
      axis = {x.dims[i + 1], 0, kernel_[i], strides_[i], pads_[i], pads_[i + spatial]};
      axis.out = y[i + 1] = ops::windows_in({axis.in, axis.begin, axis.end, axis.kernel, axis.stride, ceil_});
    }
    windows(x, axes, y, call);
  }

 private:
  void global(const View& x, Invocation& call) const {
    Dims y(x.dims.size(), 1);
    y.front() = x.dims.front();
    y.back() = x.dims.back();
    auto* to = static_cast<Result*>(call.output(0, y));
    Type::global(code_, static_cast<const Element*>(x.data), channel_tensor(x.dims, true), to, call);
  }

  void windows(const View& x, const Axes& axes, const Dims& y, Invocation& call) const {
    auto* to = static_cast<Result*>(call.output(0, y));
    const auto& [deep, high, wide] = axes;
    const auto channels = static_cast<std::size_t>(y.back()), planes = static_cast<std::size_t>(y[0] * deep.out);
    const std::size_t lines = planes * static_cast<std::size_t>(high.out);
    const std::size_t width = static_cast<std::size_t>(wide.out) * channels;
    if (lines * width == 0) return;
    const auto* from = static_cast<const Element*>(x.data);
    const std::size_t work = lines * width * static_cast<std::size_t>(volume(axes)) * sizeof(Element) / 4;
    const std::size_t parts = std::min(tasks_for(work, call), lines);
    share(call, lines, parts, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t line = begin; line < end; ++line) pool_line(from, axes, line, channels, to + line * width);
    });
  }

  static std::int64_t volume(const Axes& axes) { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }

  /// A row of results; `line` counts them over all planes of all images.
  void pool_line(const Element* x, const Axes& axes, std::size_t line, std::size_t channels, Result* y) const {
    const auto& [planes, rows, columns] = axes;
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const auto plane = static_cast<std::int64_t>(line) / rows.out;
    const Span deep(planes, plane % planes.out), high(rows, static_cast<std::int64_t>(line) % rows.out);
    const std::int64_t row = (plane / planes.out * planes.in + deep.first) * rows.in + high.first;
    for (std::int64_t ow = 0, count; ow < columns.out; ow += count) {
      count = columns.alike(ow);
      const Span wide(columns, ow);
      const Windows<Element> windows = {x + size(row * columns.in + wide.first) * channels,
                                        size(deep.count),
                                        size(high.count),
                                        size(wide.count),
                                        size(rows.in * columns.in) * channels,
                                        size(columns.in) * channels,
                                        channels,
                                        size(count),
                                        size(columns.stride) * channels};
      if (mode_ == Mode::max)
        Type::max(code_, windows, y);
      else
        Type::average(code_, windows, include_ ? volume(axes) : deep.count * high.count * wide.count, y);
      y += size(count) * channels;
    }
  }

  const VectorCode& code_;
  Mode mode_;
  Ints kernel_, strides_, pads_;
  bool ceil_, include_;
};

template <class Type>
Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (call.in(0).dtype != Type::dtype) return no("is not " + std::string(name(Type::dtype)), call.in(0).name);
  const Ints kernel = CallAttrs(call).ints("kernel_shape");
  if (kernel.size() > kMostAxes) return no("more than 3 spatial axes", call.in(0).name);
  double window = 1;
  for (const std::int64_t extent : kernel) window *= static_cast<double>(extent);
  if (Type::dtype == DType::u8 && window > 1 << 24) return no("sums may leave 32 bits", call.in(0).name);
  return yes();
}

template <class Type>
double cost(const Call& call, const Target& target) {
  return 1e-6 + target.stream(1.5 * sizeof(typename Type::Element) * call.in(0).shape.known_elements());
}

template <class Type>
std::unique_ptr<Implementation> create(const Call& call, const Target& target) {
  return std::make_unique<Pool<Type>>(call, vector_code(target));
}

}  // namespace

const Kernel pool = {
    .op = "Pool", .name = "cpu.pool", .accepts = accepts<Floats>, .cost = cost<Floats>, .create = create<Floats>};

const Kernel pool_bf16 = {
    .op = "PoolBf16",
    .name = "cpu.pool_bf16",
    .accepts =
        [](const Call& call, const Target& target) {
          const Verdict numbers = accepts<Rounded<float>>(call, target);
          return numbers ? numbers : accepts<Rounded<std::uint16_t>>(call, target);
        },
    .cost = cost<Floats>,
    .create =
        [](const Call& call, const Target& target) {
          return (call.in(0).dtype == DType::bf16 ? create<Rounded<std::uint16_t>> : create<Rounded<float>>)(call,
                                                                                                             target);
        },
};

const Kernel qpool = {
    .op = "QPool", .name = "cpu.qpool", .accepts = accepts<Bytes>, .cost = cost<Bytes>, .create = create<Bytes>};

}  // namespace modelflow::cpu
