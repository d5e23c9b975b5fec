// Quantize, Dequantize and QAdd on a GPU.
#include <string>

#include "backends/cuda/bytes.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"

namespace modelflow::cuda {
namespace {

/// The matrices whose rows and columns trade places where channels move: [batch, channels, pixels] to the end and back.
QuantizeLaunch matrices_of(std::span<const std::int64_t> x, int turn) {
  QuantizeLaunch launch = {};
  launch.turned = turn != 0;
  if (!launch.turned) {
    launch.matrices = launch.rows = 1;
    launch.columns = element_count(x);
    return launch;
  }
  const std::int64_t channels = turn > 0 ? x[1] : x.back();
  const std::int64_t pixels = element_count(x.subspan(turn > 0 ? 2 : 1, x.size() - 2));
  launch.matrices = x[0];
  launch.rows = turn > 0 ? channels : pixels;
  launch.columns = turn > 0 ? pixels : channels;
  return launch;
}

/// Both ways; back to float32 only.
class Convert : public Implementation {
 public:
  Convert(const Call& call, const DeviceLibrary& library)
      : library_(library),
        into_(call.op == "Quantize"),
        turn_((CallAttrs(call).text("y_layout") == "NHWC") - (CallAttrs(call).text("x_layout") == "NHWC")),
        steps_(steps_of(call, "")) {}

  void run(Invocation& call) const override {
    const char* op = into_ ? "Quantize" : "Dequantize";
    const View x = call.input(0);
    const std::optional<Number> number = into_ ? number_of(x.dtype) : Number::f32;
    if (call.inputs() != 1 || !number || (!into_ && x.dtype != DType::u8) || (turn_ != 0 && x.dims.size() < 3))
      throw Error(ErrorKind::invalid_input, std::string(op) + ": x is of another type or rank");
    Dims y(x.dims.begin(), x.dims.end());
    if (turn_ > 0) std::rotate(y.begin() + 1, y.begin() + 2, y.end());
    if (turn_ < 0) std::rotate(y.begin() + 1, y.end() - 1, y.end());
    QuantizeLaunch launch = matrices_of(x.dims, turn_);
    launch.number = *number;
    launch.steps = steps_;
    launch.x = x.data;
    launch.y = call.output(0, y);
    if (element_count(y) == 0) return;
    check(op, into_ ? library_.quantize(launch, call.stream()) : library_.dequantize(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  bool into_;
  int turn_;  ///< 1: channels move to the end, -1: to the second place
  Steps steps_;
};

class QAdd : public Implementation {
 public:
  QAdd(const Call& call, const DeviceLibrary& library) : library_(library) {
    sum_.a_steps = steps_of(call, "a");
    sum_.b_steps = steps_of(call, "b");
    sum_.y_steps = steps_of(call, "y");
    sum_.relu = CallAttrs(call).text("activation") == "Relu";
  }

  void run(Invocation& call) const override {
    const View a = call.input(0), b = call.input(1);
    if (a.dtype != DType::u8 || b.dtype != DType::u8)
      throw Error(ErrorKind::invalid_input, "QAdd: an operand is not uint8");
    const Broadcast shape("QAdd", {a.dims, b.dims});
    QAddLaunch launch = sum_;
    launch.elements = static_cast<std::int64_t>(shape.elements());
    launch.places = places_of("QAdd", shape, 2);
    launch.a = static_cast<const std::uint8_t*>(a.data);
    launch.b = static_cast<const std::uint8_t*>(b.data);
    launch.y = static_cast<std::uint8_t*>(call.output(0, shape.dims()));
    if (launch.elements > 0) check("QAdd", library_.qadd(launch, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  QAddLaunch sum_ = {};
};

Verdict accepts(const Call& call, const Target&) { return accepts_declared_types(call); }

Verdict accepts_sum(const Call& call, const Target&) {
  const Verdict verdict = accepts_axes(call);
  return verdict ? accepts_declared_types(call) : verdict;
}

}  // namespace

const Kernel quantize = {
    .op = "Quantize",
    .name = "cuda.quantize",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Convert>,
};

const Kernel dequantize = {
    .op = "Dequantize",
    .name = "cuda.dequantize",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = moving_seconds,
    .create = create<Convert>,
};

const Kernel qadd = {
    .op = "QAdd",
    .name = "cuda.qadd",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts_sum,
    .cost = moving_seconds,
    .create = create<QAdd>,
};

}  // namespace modelflow::cuda
