// Windows that do not overlap: line i of the window of one input line is a product [width, C] x [C, kw * M], and
// channels last that product is an output line as it lies in memory.
#include <algorithm>
#include <cstring>

#include "backends/cpu/channel_mean.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/weight_cache.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

class ConvTranspose : public Implementation {
 public:
  explicit ConvTranspose(const Call& call) : activation_(activation_of(call.attrs)) {
    const Tensor& w = *call.in(1).constant;
    channels_ = size(w.dims()[0]), m_ = size(w.dims()[1]), kh_ = size(w.dims()[2]), kw_ = size(w.dims()[3]);
    // A narrow product would fill a fraction of each vector: then all lines of the window are one product.
    together_ = kw_ * m_ < kGemmPanel / 2;
    const std::string layout = std::string("conv_transpose") + (together_ ? " together" : " by line");
    const std::size_t bytes = products() * packed_b_floats(channels_, columns()) * sizeof(float);
    packed_ = packed_weights(w, layout, bytes, [&](std::byte* out) { pack(w, reinterpret_cast<float*>(out)); });
    const Tensor* bias = call.attrs.integer("has_bias") ? call.in(2).constant : nullptr;
    for (std::size_t i = 0; bias && i < columns(); ++i) bias_.push_back(bias->as<float>()[i % m_]);
  }

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32 || x.dims.size() != 4 || size(x.dims[3]) != channels_)
      throw Error(ErrorKind::invalid_input,
                  "ConvTranspose: x is not float32 [n, h, w, " + std::to_string(channels_) + "]");
    const std::size_t lines = size(x.dims[0] * x.dims[1]), width = size(x.dims[2]);
    const Dims y = {x.dims[0], x.dims[1] * static_cast<std::int64_t>(kh_), x.dims[2] * static_cast<std::int64_t>(kw_),
                    static_cast<std::int64_t>(m_)};
    auto* to = static_cast<float*>(call.output(0, y));
    const std::size_t line = width * kw_ * m_;
    if (lines * line == 0) return;
    const auto* from = static_cast<const float*>(x.data);
    const std::size_t parts = std::min(tasks_for(lines * kh_ * line * channels_ / 8, call) * 2, lines);
    auto* scratch = together_ ? reinterpret_cast<float*>(call.scratch(parts * kh_ * line * sizeof(float))) : nullptr;
    const auto task = [&](std::size_t i) {
      for (std::size_t l = lines * i / parts; l < lines * (i + 1) / parts; ++l)
        expand(from + l * width * channels_, width, to + l * kh_ * line, scratch ? scratch + i * kh_ * line : nullptr);
    };
    if (parts == 1) return task(0);
    call.parallel(parts, task);
  }

 private:
  std::size_t products() const { return together_ ? 1 : kh_; }
  std::size_t columns() const { return (together_ ? kh_ : 1) * kw_ * m_; }

  /// [C, M, kh, kw] -> for each product [C, columns], columns ordered as in memory: window line, window column, M.
  void pack(const Tensor& w, float* out) const {
    const auto from = w.as<float>();
    std::vector<float> matrix(channels_ * columns());
    const std::size_t panels = (columns() + kGemmPanel - 1) / kGemmPanel, rows = together_ ? kh_ : 1;
    for (std::size_t p = 0; p < products(); ++p) {
      float* to = matrix.data();
      for (std::size_t c = 0; c < channels_; ++c) {
        for (std::size_t i = p; i < p + rows; ++i) {
          for (std::size_t j = 0; j < kw_; ++j) {
            for (std::size_t m = 0; m < m_; ++m) *to++ = from[((c * m_ + m) * kh_ + i) * kw_ + j];
          }
        }
      }
      pack_b_avx512(matrix.data(), columns(), false, channels_, columns(), 0, panels,
                    out + p * packed_b_floats(channels_, columns()));
    }
  }

  /// One input line -> kh output lines.
  void expand(const float* x, std::size_t width, float* y, float* scratch) const {
    Gemm g;
    g.m = width, g.n = columns(), g.k = channels_;
    g.a = x, g.lda = channels_;
    g.ldb = kGemmPanel, g.panel = kGemmPanel * channels_;
    g.ldc = columns();
    g.bias = bias_.empty() ? nullptr : bias_.data();
    g.activation = activation_;
    for (std::size_t p = 0; p < products(); ++p) {
      g.b = reinterpret_cast<const float*>(packed_.get()) + p * packed_b_floats(channels_, columns());
      g.c = together_ ? scratch : y + p * width * kw_ * m_;
      gemm_avx512(g, 0, width, 0, g.n);
    }
    if (!together_) return;
    const std::size_t piece = kw_ * m_;
    for (std::size_t i = 0; i < kh_; ++i) {
      float* line = y + i * width * piece;
      for (std::size_t c = 0; c < width; ++c)
        std::memcpy(line + c * piece, scratch + (c * kh_ + i) * piece, piece * sizeof(float));
    }
  }

  ActivationSpec activation_;
  std::size_t channels_ = 0, m_ = 0, kh_ = 0, kw_ = 0;
  bool together_ = false;
  std::shared_ptr<const std::byte> packed_;
  std::vector<float> bias_;
};

Verdict accepts(const Call& call) {
  const bool biased = call.attrs.integer("has_bias") != 0;
  if (call.inputs.size() != (biased ? 3u : 2u)) return no("wrong number of inputs");
  for (const Operand& operand : call.inputs) {
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
  }
  const Shape& w = call.in(1).shape;
  if (!w.known() || w.rank() != 4) return no("is not [C, M, kh, kw]", call.in(1).name);
  if (call.attrs.ints("strides").size() != 2) return no("not two strides");
  return yes();
}

double cost(const Call& call, const Target& target) {
  double pixels = 1, work = 2;
  const Shape& x = call.in(0).shape;
  for (std::size_t i = 0; x.has_rank() && i + 1 < x.rank(); ++i) {
    if (x[i].known()) pixels *= static_cast<double>(x[i].value());
  }
  for (std::int64_t dim : call.in(1).shape.values()) work *= static_cast<double>(dim);
  return 1e-6 + std::max(target.compute(pixels * work, 0.4), target.stream(pixels * work * 2 / 8));
}

}  // namespace

const Kernel conv_transpose_avx512 = {
    .op = "ConvTranspose",
    .name = "cpu.conv_transpose_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      for (std::size_t i = 1; i < call.inputs.size(); ++i) {
        if (!call.in(i).constant) throw Error(ErrorKind::unsupported, "ConvTranspose: the weights are not constant");
      }
      return std::make_unique<ConvTranspose>(call);
    },
};

}  // namespace modelflow::cpu
