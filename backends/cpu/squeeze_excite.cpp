// Squeeze and excitation in two passes over x: the means, then the product. What lies between are two vectors.
#include "backends/cpu/squeeze_excite.h"

#include <algorithm>

#include "backends/cpu/channel_mean.h"
#include "backends/cpu/channels.h"
#include "backends/cpu/weight_cache.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

/// [out, in, 1, 1] -> [in, out], so that the product runs along the outputs.
std::shared_ptr<const std::byte> transposed(const Tensor& w) {
  return packed_weights(w, "transposed matrix", w.bytes(), [&](std::byte* bytes) {
    const auto out = static_cast<std::size_t>(w.dims()[0]), in = static_cast<std::size_t>(w.dims()[1]);
    auto* to = reinterpret_cast<float*>(bytes);
    const auto from = w.as<float>();
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t i = 0; i < in; ++i) to[i * out + o] = from[o * in + i];
    }
  });
}

const float* weights(const std::shared_ptr<const std::byte>& bytes) {
  return reinterpret_cast<const float*>(bytes.get());
}

const Tensor& constant(const Call& call, std::size_t input) {
  if (!call.in(input).constant) throw Error(ErrorKind::unsupported, call.op + ": the weights are not constant");
  return *call.in(input).constant;
}

}  // namespace

ExciteGates::ExciteGates(const Call& call)
    : activation_(activation_of(call.attrs)),
      skip_(call.attrs.integer("skip") != 0),
      w1_(transposed(constant(call, 1))),
      b1_(constant(call, 2)),
      w2_(transposed(constant(call, 3))),
      b2_(constant(call, 4)),
      rank_(constant(call, 1).rank()) {
  gate_.kind = call.attrs.text("gate") == "Sigmoid" ? Activation::sigmoid : Activation::hard_sigmoid;
  gate_.alpha = call.attrs.number("gate_alpha");
  gate_.beta = call.attrs.number("gate_beta");
}

void ExciteGates::apply(std::size_t batch, float* rows, Invocation& call) const {
  const auto squeezed = static_cast<std::size_t>(b1_.elements());
  auto* middle = reinterpret_cast<float*>(call.scratch((squeezed + channels()) * sizeof(float)));
  float* excited = middle + squeezed;
  const ChannelLoops& loops = channel_loops();
  const auto apply = host_isa() >= Isa::avx512 ? activate_avx512 : static_cast<decltype(&activate_avx512)>(activate);
  for (std::size_t n = 0; n < batch; ++n) {
    float* row = rows + n * channels();
    loops.vector_matrix(row, weights(w1_), b1_.as<float>().data(), channels(), squeezed, middle);
    apply(activation_, middle, middle, squeezed);
    loops.vector_matrix(middle, weights(w2_), b2_.as<float>().data(), squeezed, channels(), excited);
    apply(gate_, excited, row, channels());
    for (std::size_t c = 0; skip_ && c < channels(); ++c) row[c] += 1;  // x + x * gate
  }
}

Verdict accepts_excite(const Call& call) {
  if (call.inputs.size() != 5) return no("takes 5 inputs");
  for (std::size_t i = 1; i < 5; ++i) {
    if (call.in(i).dtype != DType::f32) return no("is not float32", call.in(i).name);
  }
  for (std::size_t i : {1, 3}) {
    if (!call.in(i).shape.known() || call.in(i).shape.rank() < 3) return no("has no shape", call.in(i).name);
  }
  try {
    activation_of(call.attrs);
  } catch (const Error& error) {
    return no(error.what());
  }
  return yes();
}

namespace {

class SqueezeExcite : public Implementation {
 public:
  explicit SqueezeExcite(const Call& call) : gates_(call), last_(call.attrs.text("layout", "NHWC") == "NHWC") {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32 || x.dims.size() != gates_.rank())
      throw Error(ErrorKind::invalid_input, "SqueezeExcite: x is not float32 of rank " + std::to_string(gates_.rank()));
    const ChannelTensor t = channel_tensor(x.dims, last_);
    if (t.channels != gates_.channels())
      throw Error(ErrorKind::invalid_input, "SqueezeExcite: x has " + std::to_string(t.channels) + " channels, not " +
                                                std::to_string(gates_.channels()));
    auto* y = static_cast<float*>(call.output(0, x.dims));
    if (t.size() == 0) return;
    const auto* from = static_cast<const float*>(x.data);
    auto* factors = reinterpret_cast<float*>(call.scratch(t.batch * t.channels * sizeof(float)));
    channel_mean(from, t, factors, call);
    gates_.apply(t.batch, factors, call);
    multiply(from, t, factors, y, call);
  }

 private:
  void multiply(const float* x, const ChannelTensor& t, const float* factors, float* y, Invocation& call) const {
    const ChannelLoops& loops = channel_loops();
    for_channels(t, call, [&](const ChannelPart& part) {
      const float* factor = factors + part.channel;
      if (last_) return loops.scale_rows(x + part.at, factor, part.units, part.width, y + part.at);
      for (std::size_t c = 0; c < part.units; ++c)
        loops.scale(x + part.at + c * part.width, factor[c], part.width, y + part.at + c * part.width);
    });
  }

  ExciteGates gates_;
  bool last_;
};

Verdict accepts(const Call& call) {
  if (!call.inputs.empty() && call.in(0).dtype != DType::f32) return no("is not float32", call.in(0).name);
  return accepts_excite(call);
}

double cost(const Call& call, const Target& target) {
  return 2e-6 + target.stream(12 * call.in(0).shape.known_elements());
}

}  // namespace

const Kernel squeeze_excite = {
    .op = "SqueezeExcite",
    .name = "cpu.squeeze_excite",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<SqueezeExcite>(call);
    },
};

}  // namespace modelflow::cpu
