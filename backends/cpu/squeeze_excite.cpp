// Squeeze and excitation in two passes over x: the means, then the product. What lies between are two vectors.
#include <algorithm>
#include <vector>

#include "backends/cpu/activation.h"
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

class SqueezeExcite : public Implementation {
 public:
  explicit SqueezeExcite(const Call& call)
      : activation_(activation_of(call.attrs)),
        last_(call.attrs.text("layout", "NHWC") == "NHWC"),
        skip_(call.attrs.integer("skip") != 0),
        w1_(transposed(*call.in(1).constant)),
        b1_(*call.in(2).constant),
        w2_(transposed(*call.in(3).constant)),
        b2_(*call.in(4).constant),
        rank_(call.in(1).constant->rank()) {
    gate_.kind = call.attrs.text("gate") == "Sigmoid" ? Activation::sigmoid : Activation::hard_sigmoid;
    gate_.alpha = call.attrs.number("gate_alpha");
    gate_.beta = call.attrs.number("gate_beta");
  }

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32 || x.dims.size() != rank_)
      throw Error(ErrorKind::invalid_input, "SqueezeExcite: x is not float32 of rank " + std::to_string(rank_));
    const ChannelTensor t = channel_tensor(x.dims, last_);
    if (static_cast<std::int64_t>(t.channels) != b2_.elements())
      throw Error(ErrorKind::invalid_input, "SqueezeExcite: x has " + std::to_string(t.channels) + " channels, not " +
                                                std::to_string(b2_.elements()));
    auto* y = static_cast<float*>(call.output(0, x.dims));
    if (t.size() == 0) return;
    const auto* from = static_cast<const float*>(x.data);
    auto* factors = reinterpret_cast<float*>(call.scratch(t.batch * t.channels * sizeof(float)));
    channel_mean(from, t, factors, call);
    gates(t, factors, call);
    multiply(from, t, factors, y, call);
  }

 private:
  /// The means in `factors` become the factors.
  void gates(const ChannelTensor& t, float* factors, Invocation& call) const {
    const auto squeezed = static_cast<std::size_t>(b1_.elements());
    auto* middle = reinterpret_cast<float*>(call.scratch((squeezed + t.channels) * sizeof(float)));
    float* excited = middle + squeezed;
    const ChannelLoops& loops = channel_loops();
    const auto apply = host_isa() >= Isa::avx512 ? activate_avx512 : static_cast<decltype(&activate_avx512)>(activate);
    for (std::size_t n = 0; n < t.batch; ++n) {
      float* row = factors + n * t.channels;
      loops.vector_matrix(row, weights(w1_), b1_.as<float>().data(), t.channels, squeezed, middle);
      apply(activation_, middle, middle, squeezed);
      loops.vector_matrix(middle, weights(w2_), b2_.as<float>().data(), squeezed, t.channels, excited);
      apply(gate_, excited, row, t.channels);
      if (skip_) {
        for (std::size_t c = 0; c < t.channels; ++c) row[c] += 1;  // x + x * gate
      }
    }
  }

  void multiply(const float* x, const ChannelTensor& t, const float* factors, float* y, Invocation& call) const {
    const ChannelLoops& loops = channel_loops();
    const std::size_t units = last_ ? t.rows : t.channels;  // per image: rows, or planes
    const std::size_t width = last_ ? t.channels : t.rows;
    const std::size_t parts = std::min(tasks_for(t.rows * t.channels, call), units);
    const auto task = [&](std::size_t i) {
      const std::size_t n = i / parts, first = units * (i % parts) / parts, end = units * (i % parts + 1) / parts;
      const std::size_t at = (n * units + first) * width;
      const float* factor = factors + n * t.channels;
      if (last_) return loops.scale_rows(x + at, factor, end - first, width, y + at);
      for (std::size_t c = first; c < end; ++c)
        loops.scale(x + at + (c - first) * width, factor[c], width, y + at + (c - first) * width);
    };
    if (t.batch * parts == 1) return task(0);
    call.parallel(t.batch * parts, task);
  }

  static const float* weights(const std::shared_ptr<const std::byte>& bytes) {
    return reinterpret_cast<const float*>(bytes.get());
  }

  ActivationSpec activation_, gate_;
  bool last_, skip_;
  std::shared_ptr<const std::byte> w1_;
  Tensor b1_;
  std::shared_ptr<const std::byte> w2_;
  Tensor b2_;
  std::size_t rank_;
};

Verdict accepts(const Call& call) {
  if (call.inputs.size() != 5) return no("takes 5 inputs");
  for (const Operand& operand : call.inputs) {
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
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
      for (std::size_t i = 1; i < 5; ++i) {
        if (!call.in(i).constant) throw Error(ErrorKind::unsupported, "SqueezeExcite: the weights are not constant");
      }
      return std::make_unique<SqueezeExcite>(call);
    },
};

}  // namespace modelflow::cpu
