// Pooling on a GPU over one to three axes, channels last.
#include <algorithm>
#include <string>

#include "backends/call_attrs.h"
#include "backends/cuda/image.h"
#include "backends/cuda/kernels.h"
#include "backends/ops/pool_extent.h"

namespace modelflow::cuda {
namespace {

constexpr const char *kFloats = "Pool", *kBytes = "QPool";
constexpr std::size_t kMostAxes = 3;  // planes, rows, columns

/// Of floats, or of steps of 8 bits: means are rounded to the nearest step.
class Pool : public Implementation {
 public:
  Pool(const Call& call, const DeviceLibrary& library)
      : library_(library),
        op_(call.op == kBytes ? kBytes : kFloats),
        mode_(CallAttrs(call).text("mode")),
        kernel_(CallAttrs(call).ints("kernel_shape")),
        strides_(CallAttrs(call).ints("strides")),
        pads_(CallAttrs(call).ints("pads")),
        ceil_(CallAttrs(call).flag("ceil_mode")),
        include_(CallAttrs(call).flag("count_include_pad")) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    const Image image = image_of(op_, x, true);
    if (mode_ == "global_average") return means(call, image);
    const std::size_t spatial = kernel_.size();
    if (spatial < 1 || spatial > kMostAxes || x.dims.size() != spatial + 2)
      throw Error(ErrorKind::invalid_input, std::string(op_) + ": x has rank " + std::to_string(x.dims.size()) +
                                                ", the window " + std::to_string(spatial) + " axes");
    PoolLaunch launch = {};
    launch.number = image.number;
    launch.batch = image.batch;
    launch.channels = image.channels;
    std::ranges::fill(launch.axis, PoolLaunch::Axis{1, 1, 1, 1, 0});
    Dims y(x.dims.begin(), x.dims.end());
    for (std::size_t i = 0; i < spatial; ++i) {
      const std::int64_t in = x.dims[i + 1];
      y[i + 1] = ops::windows_in({in, pads_[i], pads_[i + spatial], kernel_[i], strides_[i], ceil_});
      launch.axis[kMostAxes - spatial + i] = {in, y[i + 1], kernel_[i], strides_[i], pads_[i]};
    }
    launch.max = mode_ == "max";
    launch.counts_pad = include_;
    launch.x = x.data;
    launch.y = call.output(0, y);
    if (element_count(y) > 0) check(op_, library_.pool(launch, call.stream()));
  }

 private:
  void means(Invocation& call, const Image& image) const {
    const View x = call.input(0);
    Dims y(x.dims.size(), 1);
    y.front() = image.batch;
    y.back() = image.channels;
    ChannelMeanLaunch launch = {};
    launch.image = image;
    launch.y = call.output(0, y);
    if (element_count(y) == 0) return;
    launch.image.parts = parts_of(image.batch * ((image.channels + 31) / 32), 4 * image.rows);
    const auto sums = static_cast<std::size_t>(image.batch * launch.image.parts * image.channels);
    launch.sums = reinterpret_cast<float*>(call.scratch(sums * sizeof(float)));
    check(op_, library_.channel_mean(launch, call.stream()));
  }

  const DeviceLibrary& library_;
  const char* op_;
  std::string mode_;
  Ints kernel_, strides_, pads_;
  bool ceil_, include_;
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (CallAttrs(call).ints("kernel_shape").size() > kMostAxes) return no("more than 3 spatial axes", call.in(0).name);
  return call.op == kBytes ? accepts_declared_types(call) : accepts_numbers(call);
}

double cost(const Call& call, const Target& target) {
  const double launches = CallAttrs(call).text("mode") == "global_average" ? 2 : 1;
  return launches * target.launch + target.stream(operand_bytes(call));
}

}  // namespace

const Kernel pool = {
    .op = kFloats,
    .name = "cuda.pool",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Pool>,
};

const Kernel qpool = {
    .op = kBytes,
    .name = "cuda.qpool",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Pool>,
};

}  // namespace modelflow::cuda
