// Squeeze and excitation of 8-bit numbers: exact sums, factors in float32, and one pass that multiplies and quantizes.
#include "backends/call_attrs.h"
#include "backends/cpu/pixels/channel_mean.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/cpu/pixels/squeeze_excite.h"

namespace modelflow::cpu {
namespace {

class QSqueezeExcite : public Implementation {
 public:
  QSqueezeExcite(const Call& call, const VectorCode& code)
      : gates_(call, code),
        last_(CallAttrs(call).text("layout") == "NHWC"),
        x_scale_(CallAttrs(call).number("x_scale")),
        y_scale_(CallAttrs(call).number("y_scale")),
        zeros_{static_cast<std::int32_t>(CallAttrs(call).integer("x_zero_point")),
               static_cast<std::int32_t>(CallAttrs(call).integer("y_zero_point"))} {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::u8 || x.dims.size() != gates_.rank())
      throw Error(ErrorKind::invalid_input, "QSqueezeExcite: x is not 8-bit of rank " + std::to_string(gates_.rank()));
    const ChannelTensor t = channel_tensor(x.dims, last_);
    if (t.channels != gates_.channels())
      throw Error(ErrorKind::invalid_input, "QSqueezeExcite: x has " + std::to_string(t.channels) + " channels, not " +
                                                std::to_string(gates_.channels()));
    auto* y = static_cast<std::uint8_t*>(call.output(0, x.dims));
    if (t.size() == 0) return;
    const auto* from = static_cast<const std::uint8_t*>(x.data);
    const std::size_t count = t.batch * t.channels;
    auto* factors = reinterpret_cast<float*>(call.scratch(count * sizeof(float)));
    channel_mean(gates_.code(), from, t, factors, call);
    for (std::size_t i = 0; i < count; ++i) factors[i] = (factors[i] - static_cast<float>(zeros_.x_zero)) * x_scale_;
    gates_.apply(t.batch, factors, call);
    const float kept = gates_.skip() ? 1 : 0;  // x + x * gate, of finite numbers
    for (std::size_t i = 0; i < count; ++i) factors[i] = (factors[i] + kept) * (x_scale_ / y_scale_);
    const ByteLoops& loops = gates_.code().bytes;
    for_channels(t, call, [&](const ChannelPart& part) {
      const float* factor = factors + part.channel;
      if (last_) return loops.rescale_rows(zeros_, from + part.at, factor, part.units, part.width, y + part.at);
      for (std::size_t c = 0; c < part.units; ++c) {
        const std::size_t at = part.at + c * part.width;
        loops.rescale(zeros_, from + at, factor[c], part.width, y + at);
      }
    });
  }

 private:
  ExciteGates gates_;
  bool last_;
  float x_scale_, y_scale_;
  Rescale zeros_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (!call.inputs.empty() && call.in(0).dtype != DType::u8) return no("is not 8-bit", call.in(0).name);
  return accepts_excite(call, target);
}

}  // namespace

const Kernel qsqueeze_excite = {
    .op = "QSqueezeExcite",
    .name = "cpu.qsqueeze_excite",
    .accepts = accepts,
    .cost = [](const Call& call,
               const Target& target) { return 2e-6 + target.stream(3 * call.in(0).shape.known_elements()); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<QSqueezeExcite>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
