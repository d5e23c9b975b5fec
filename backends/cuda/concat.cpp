// Concat and Upsample on a GPU: copies of pixels, channels last.
#include <string>

#include "backends/call_attrs.h"
#include "backends/cuda/image.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/work.h"
#include "backends/ops/repeats.h"

namespace modelflow::cuda {
namespace {

/// [batch, high, wide, channels]; a line of pixels has one line.
struct Lines {
  std::int64_t batch, high, wide, channels;
};

CopyLaunch::Source source_of(const View& x, const Lines& lines, std::int64_t up, std::int64_t across) {
  return {x.data, lines.high, lines.wide, lines.channels * static_cast<std::int64_t>(byte_count(x.dtype, {})),
          up,     across};
}

/// From images that the launch has to its result, which `dims` extents belong to.
void finish(const char* op, CopyLaunch& launch, const Dims& dims, const DeviceLibrary& library, Invocation& call) {
  for (std::int32_t i = 0; i < launch.images; ++i) {
    const CopyLaunch::Source& from = launch.from[i];
    launch.pixel += from.pixel;
    if (ops::repeated(op, from.high, from.up) != launch.high ||
        ops::repeated(op, from.wide, from.across) != launch.wide)
      throw Error(ErrorKind::invalid_input, std::string(op) + ": the images differ in size");
  }
  launch.y = call.output(0, dims);
  if (element_count(dims) > 0) check(op, library.copy_pixels(launch, call.stream()));
}

class Concat : public Implementation {
 public:
  Concat(const Call& call, const DeviceLibrary& library)
      : library_(library), factors_(CallAttrs(call).ints("factors")) {}

  void run(Invocation& call) const override {
    const std::size_t count = call.inputs();
    if (count < 2 || count > CopyLaunch::kImages || factors_.size() != 2 * count)
      throw Error(ErrorKind::invalid_input, "Concat: factors do not fit the inputs");
    shared_number("Concat", call);
    CopyLaunch launch = {};
    launch.images = static_cast<std::int32_t>(count);
    std::int64_t channels = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const View x = call.input(i);
      if (x.dims.size() != 4 || x.dims[0] != call.input(0).dims[0])
        throw Error(ErrorKind::invalid_input, "Concat: input " + std::to_string(i) + " is not [n, h, w, c]");
      launch.from[i] = source_of(x, {x.dims[0], x.dims[1], x.dims[2], x.dims[3]}, factors_[2 * i], factors_[2 * i + 1]);
      channels += x.dims[3];
    }
    launch.batch = call.input(0).dims[0];
    launch.high = ops::repeated("Concat", launch.from[0].high, launch.from[0].up);
    launch.wide = ops::repeated("Concat", launch.from[0].wide, launch.from[0].across);
    finish("Concat", launch, {launch.batch, launch.high, launch.wide, channels}, library_, call);
  }

 private:
  const DeviceLibrary& library_;
  Ints factors_;
};

constexpr const char *kUpsample = "Upsample", *kQUpsample = "QUpsample";

/// Of floats, or of steps of 8 bits.
class Upsample : public Implementation {
 public:
  Upsample(const Call& call, const DeviceLibrary& library)
      : library_(library),
        op_(call.op == kQUpsample ? kQUpsample : kUpsample),
        factors_(CallAttrs(call).ints("factors")) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (op_ == kUpsample ? !number_of(x.dtype) : x.dtype != DType::u8)
      throw Error(ErrorKind::invalid_input, std::string(op_) + ": x is of another type");
    if (x.dims.size() != factors_.size() + 2)
      throw Error(ErrorKind::invalid_input,
                  std::string(op_) + ": x is not of rank " + std::to_string(factors_.size() + 2));
    const bool flat = factors_.size() == 1;
    Dims y(x.dims.begin(), x.dims.end());
    for (std::size_t i = 0; i < factors_.size(); ++i) y[i + 1] = ops::repeated(op_, y[i + 1], factors_[i]);
    CopyLaunch launch = {};
    launch.images = 1;
    const Lines lines = {x.dims[0], flat ? 1 : x.dims[1], x.dims[x.dims.size() - 2], x.dims.back()};
    launch.from[0] = source_of(x, lines, flat ? 1 : factors_[0], factors_.back());
    launch.batch = y[0];
    launch.high = flat ? 1 : y[1];
    launch.wide = y[y.size() - 2];
    finish(op_, launch, y, library_, call);
  }

 private:
  const DeviceLibrary& library_;
  const char* op_;
  Ints factors_;
};

Verdict accepts_concat(const Call& call, const Target&) {
  if (call.inputs.size() < 2 || call.inputs.size() > CopyLaunch::kImages) return no("takes two to eight inputs");
  if (CallAttrs(call).ints("groups") != Ints{1}) return no("takes no channels in turn");
  return accepts_numbers(call);
}

Verdict repeats(const Call& call) {
  if (call.inputs.size() != 1) return no("takes one input");
  const Ints factors = CallAttrs(call).ints("factors");
  return factors.empty() || factors.size() > 2 ? no("takes 1 or 2 factors") : yes();
}

Verdict accepts_upsample(const Call& call, const Target&) {
  if (CallAttrs(call).text("mode") != "nearest") return no("repeats pixels only");
  if (Verdict verdict = repeats(call); !verdict) return verdict;
  return accepts_numbers(call);
}

Verdict accepts_qupsample(const Call& call, const Target&) {
  if (Verdict verdict = repeats(call); !verdict) return verdict;
  return accepts_declared_types(call);
}

}  // namespace

const Kernel concat = {
    .op = "Concat",
    .name = "cuda.concat",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts_concat,
    .cost = moving_seconds,
    .create = create<Concat>,
};

const Kernel qupsample = {
    .op = kQUpsample,
    .name = "cuda.qupsample",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts_qupsample,
    .cost = moving_seconds,
    .create = create<Upsample>,
};

const Kernel upsample = {
    .op = kUpsample,
    .name = "cuda.upsample",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts_upsample,
    .cost = moving_seconds,
    .create = create<Upsample>,
};

}  // namespace modelflow::cuda
