// Squeeze and excitation in two passes over x: one for the means, one for the product with the factors made of them.
#include "backends/cpu/pixels/squeeze_excite.h"

#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/pixels/channel_mean.h"
#include "backends/cpu/pixels/kernels.h"
#include "backends/ops/squeeze_excite.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kPanel = ChannelLoops::kPanel;

std::size_t panels(std::size_t filters) { return (filters + kPanel - 1) / kPanel; }

/// [out, in, 1, 1] -> [panels, in, kPanel]: the product runs along the outputs and reads its weights as a stream.
template <class T>
std::shared_ptr<const std::byte> packed(const Tensor& w) {
  const auto out = static_cast<std::size_t>(w.dims()[0]), in = static_cast<std::size_t>(w.dims()[1]);
  return packed_weights(w, "panels of filters", panels(out) * in * kPanel * sizeof(T), [&](std::byte* bytes) {
    auto* to = reinterpret_cast<T*>(bytes);
    const auto from = w.as<T>();
    for (std::size_t panel = 0; panel < panels(out); ++panel) {
      for (std::size_t i = 0; i < in; ++i) {
        for (std::size_t o = panel * kPanel; o < (panel + 1) * kPanel; ++o) *to++ = o < out ? from[o * in + i] : T{0};
      }
    }
  });
}

const Tensor& constant(const Call& call, std::size_t input) {
  if (!call.in(input).constant) throw Error(ErrorKind::unsupported, call.op + ": the weights are not constant");
  return *call.in(input).constant;
}

// Products that keep a thread busy for some microseconds.
constexpr std::size_t kProducts = 32768;

}  // namespace

ExciteMatrix::ExciteMatrix(const Call& call, std::size_t index) : bytes_(call.in(index).dtype == DType::i8) {
  const Tensor& w = constant(call, index);
  channels_ = static_cast<std::size_t>(w.dims()[1]);
  weights_ = bytes_ ? packed<std::int8_t>(w) : packed<float>(w);
  if (bytes_) scale_ = constant(call, ++index);
  bias_ = constant(call, index + 1);
}

void ExciteMatrix::apply(const ChannelLoops& loops, const float* x, float* y, Invocation& call) const {
  const std::size_t all = panels(filters());
  const std::size_t worth = std::max<std::size_t>(filters() * channels_ / kProducts, 1);
  share(call, all, std::min({all, worth, call.threads()}), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t panel = begin; panel < end; ++panel) one_panel(loops, panel, x, y);
  });
}

void ExciteMatrix::one_panel(const ChannelLoops& loops, std::size_t panel, const float* x, float* y) const {
  const std::size_t first = panel * kPanel, count = std::min(kPanel, filters() - first);
  const std::byte* weights = weights_.get();
  float sums[kPanel];
  if (bytes_) {
    loops.vector_bytes(x, reinterpret_cast<const std::int8_t*>(weights) + first * channels_, channels_, sums);
    const float* scale = scale_.as<float>().data() + first;
    for (std::size_t i = 0; i < count; ++i) sums[i] *= scale[i];
  } else {
    loops.vector_matrix(x, reinterpret_cast<const float*>(weights) + first * channels_, channels_, sums);
  }
  const float* bias = bias_.as<float>().data() + first;
  for (std::size_t i = 0; i < count; ++i) y[first + i] = sums[i] + bias[i];
}

ExciteGates::ExciteGates(const Call& call, const VectorCode& code)
    : code_(code),
      activation_(activation_of(call)),
      skip_(CallAttrs(call).flag("skip")),
      squeeze_(call, 1),
      excite_(call, ops::second_weights(call)),
      rank_(constant(call, 1).rank()) {
  gate_.kind = CallAttrs(call).text("gate") == "Sigmoid" ? Activation::sigmoid : Activation::hard_sigmoid;
  gate_.alpha = CallAttrs(call).number("gate_alpha");
  gate_.beta = CallAttrs(call).number("gate_beta");
}

void ExciteGates::apply(std::size_t batch, float* rows, Invocation& call) const {
  auto* middle = reinterpret_cast<float*>(call.scratch((squeeze_.filters() + channels()) * sizeof(float)));
  float* excited = middle + squeeze_.filters();
  const auto activate = code_.pointwise.activate;
  for (std::size_t n = 0; n < batch; ++n) {
    float* row = rows + n * channels();
    squeeze_.apply(code_.channels, row, middle, call);
    activate(activation_, middle, middle, squeeze_.filters());
    excite_.apply(code_.channels, middle, excited, call);
    activate(gate_, excited, row, channels());
  }
}

Verdict accepts_excite(const Call& call, const Target&) {
  const bool bytes = call.op == "QSqueezeExcite";
  const std::size_t count = bytes ? 7 : 5, second = ops::second_weights(call);
  if (call.inputs.size() != count) return no("takes " + std::to_string(count) + " inputs");
  for (std::size_t i = 1; i < count; ++i) {
    const DType type = bytes && (i == 1 || i == second) ? DType::i8 : DType::f32;
    if (call.in(i).dtype != type) return no("is not " + std::string(name(type)), call.in(i).name);
    if (!call.in(i).constant) return no("is not constant", call.in(i).name);
  }
  for (const std::size_t i : {std::size_t{1}, second}) {
    if (!call.in(i).shape.known() || call.in(i).shape.rank() < 3) return no("has no shape", call.in(i).name);
  }
  try {
    activation_of(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  return yes();
}

namespace {

class SqueezeExcite : public Implementation {
 public:
  SqueezeExcite(const Call& call, const VectorCode& code)
      : gates_(call, code), last_(CallAttrs(call).text("layout") == "NHWC") {}

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
    channel_mean(gates_.code(), from, t, factors, call);
    gates_.apply(t.batch, factors, call);
    multiply(from, t, factors, y, call);
  }

 private:
  void multiply(const float* x, const ChannelTensor& t, const float* factors, float* y, Invocation& call) const {
    const ChannelLoops& loops = gates_.code().channels;
    for_channels(t, call, [&](const ChannelPart& part) {
      const float* factor = factors + part.channel;
      if (last_) return loops.scale_rows(x + part.at, factor, gates_.skip(), part.units, part.width, y + part.at);
      for (std::size_t c = 0; c < part.units; ++c)
        loops.scale(x + part.at + c * part.width, factor[c], gates_.skip(), part.width, y + part.at + c * part.width);
    });
  }

  ExciteGates gates_;
  bool last_;
};

Verdict accepts(const Call& call, const Target& target) {
  if (!call.inputs.empty() && call.in(0).dtype != DType::f32) return no("is not float32", call.in(0).name);
  return accepts_excite(call, target);
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
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<SqueezeExcite>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
