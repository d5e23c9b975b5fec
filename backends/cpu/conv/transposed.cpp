// The kernel of transposed convolutions over one to three axes, here for windows that do not overlap: line i of the
// window of one input line is a product [width, C] x [C, kw * M], and with channels last that product is an output line
// as it lies in memory. With few output channels (a last layer has one) the operands change places, so that vectors run
// along the line.
#include "backends/cpu/conv/transposed.h"

#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/transposed_problem.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/gemm/f32.h"

namespace modelflow::cpu {
namespace {

/// The output lines of one input line: those of a window's plane lie under each other.
struct Lines {
  float* first;
  std::size_t in_plane, line, plane;  ///< lines of a window's plane, floats of a line, floats from plane to plane
  float* operator[](std::size_t i) const { return first + i / in_plane * plane + i % in_plane * line; }
};

class ConvTranspose : public Implementation {
 public:
  ConvTranspose(const Call& call, const Target& target, const F32Code& code)
      : code_(code), blocks_(code.blocks(target)), node_(call), turned_(kw() * node_.m < code.panel / 2) {
    const Tensor& w = *call.in(1).constant;
    for (std::size_t i = 0; !node_.bias.empty() && i < kw() * node_.m; ++i) bias_.push_back(node_.bias[i % node_.m]);
    if (turned_) {
      pack_turned(w);
      return;
    }
    const std::size_t bytes = window_lines() * code.packed_floats(node_.channels, kw() * node_.m) * sizeof(float);
    packed_ = packed_weights(w, "conv_transpose " + std::string(code.layout), bytes,
                             [&](std::byte* out) { pack(w, reinterpret_cast<float*>(out)); });
  }

  void run(Invocation& call) const override {
    const ConvTransposeRun r = node_.read(call);
    const std::size_t width = r.in[2], height = r.in[1], lines = r.batch * r.in[0] * height;
    const std::size_t line = r.out[2] * node_.m, plane = r.out[1] * line;
    if (lines * line == 0) return;
    const std::size_t parts = std::min(tasks_for(lines * window_lines() * line * node_.channels / 8, call) * 2, lines);
    const std::size_t each = (width * (node_.channels + 1 + window_lines() * kw() * node_.m) + 15) / 16 * 16;
    auto* scratch = turned_ ? reinterpret_cast<float*>(call.scratch(parts * each * sizeof(float))) : nullptr;
    share(call, lines, parts, [&](std::size_t begin, std::size_t end, std::size_t i) {
      for (std::size_t l = begin; l < end; ++l) {
        const float* x_line = r.x + l * width * node_.channels;
        const Lines y_lines{r.y + l / height * kd() * plane + l % height * kh() * line, kh(), line, plane};
        turned_ ? expand_turned(x_line, width, y_lines, scratch + i * each) : expand(x_line, width, y_lines);
      }
    });
  }

 private:
  std::size_t kd() const { return node_.axis[0].kernel; }
  std::size_t kh() const { return node_.axis[1].kernel; }
  std::size_t kw() const { return node_.axis[2].kernel; }
  std::size_t window_lines() const { return kd() * kh(); }

  /// [C, M, kd, kh, kw] -> for each line of the window [C, kw * M].
  void pack(const Tensor& w, float* out) const {
    const auto from = w.as<float>();
    const std::size_t columns = kw() * node_.m;
    std::vector<float> matrix(node_.channels * columns);
    for (std::size_t i = 0; i < window_lines(); ++i) {
      float* to = matrix.data();
      for (std::size_t c = 0; c < node_.channels; ++c) {
        for (std::size_t j = 0; j < kw(); ++j) {
          for (std::size_t m = 0; m < node_.m; ++m) *to++ = from[((c * node_.m + m) * window_lines() + i) * kw() + j];
        }
      }
      code_.pack_b(matrix.data(), columns, false, node_.channels, columns, 0, code_.panels(columns),
                   out + i * code_.packed_floats(node_.channels, columns));
    }
  }

  /// [C, M, kd, kh, kw] -> [kd * kh * kw * M, C + 1], the bias as the last column.
  void pack_turned(const Tensor& w) {
    const auto from = w.as<float>();
    for (std::size_t i = 0; i < window_lines(); ++i) {
      for (std::size_t j = 0; j < kw() * node_.m; ++j) {
        for (std::size_t c = 0; c < node_.channels; ++c)
          rows_.push_back(from[((c * node_.m + j % node_.m) * window_lines() + i) * kw() + j / node_.m]);
        rows_.push_back(bias_.empty() ? 0 : bias_[j]);
      }
    }
  }

  /// One input line -> kd * kh output lines.
  void expand(const float* x, std::size_t width, const Lines& y) const {
    Gemm g;
    g.m = width, g.n = kw() * node_.m, g.k = node_.channels;
    g.a = x, g.lda = node_.channels;
    g.ldb = code_.panel, g.panel = code_.panel * node_.channels;
    g.ldc = g.n;
    g.bias = bias_.empty() ? nullptr : bias_.data();
    g.activation = node_.activation;
    g.blocks = blocks_;
    for (std::size_t i = 0; i < window_lines(); ++i) {
      g.b = reinterpret_cast<const float*>(packed_.get()) + i * code_.packed_floats(node_.channels, g.n);
      g.c = y[i];
      code_.gemm(g, 0, width, 0, g.n, nullptr);
    }
  }

  /// The same by [kd * kh * kw * M, C] x [C, width], then the columns of each line interleaved.
  void expand_turned(const float* x, std::size_t width, const Lines& y, float* scratch) const {
    const std::size_t piece = kw() * node_.m;
    code_.transpose(x, node_.channels, scratch, width, width, node_.channels);
    std::fill_n(scratch + node_.channels * width, width, 1.0f);  // times the bias
    Gemm g;
    g.m = window_lines() * piece, g.n = width, g.k = node_.channels + 1;
    g.a = rows_.data(), g.lda = g.k;
    g.b = scratch, g.ldb = width, g.panel = code_.panel;
    g.c = scratch + g.k * width, g.ldc = width;
    g.activation = node_.activation;
    g.blocks = blocks_;
    code_.gemm(g, 0, g.m, 0, width, nullptr);
    for (std::size_t row = 0; row < g.m; ++row) {
      const float* from = g.c + row * width;
      float* to = y[row / piece] + row % piece;
      for (std::size_t c = 0; c < width; ++c) to[c * piece] = from[c];
    }
  }

  const F32Code& code_;
  GemmBlocks blocks_;
  ConvTransposeNode node_;
  bool turned_;
  std::shared_ptr<const std::byte> packed_;
  std::vector<float> bias_, rows_;  // bias_: of a line of the window
};

Verdict accepts(const Call& call, const Target&) {
  const bool biased = CallAttrs(call).flag("has_bias");
  if (call.inputs.size() != (biased ? 3u : 2u)) return no("wrong number of inputs");
  for (const Operand& operand : call.inputs) {
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
  }
  for (std::size_t i = 1; i < call.inputs.size(); ++i)
    if (!call.in(i).constant) return no("is not constant", call.in(i).name);
  const Shape& w = call.in(1).shape;
  if (!w.known() || w.rank() < 3 || w.rank() > 5) return no("is not [C, M, extents of the window]", call.in(1).name);
  const ops::TransposedWindows windows = ops::transposed_windows(call);
  if (Verdict v = windows.check(); !v) return v;
  return ops::accepts_phases(windows, call.in(1));
}

std::unique_ptr<Implementation> make(const Call& call, const Target& target, const F32Code& code) {
  if (ops::transposed_windows(call).apart()) return std::make_unique<ConvTranspose>(call, target, code);
  return few_filters(call, code) ? few_conv_transpose(call, target, code)
                                 : overlapping_conv_transpose(call, target, code);
}

double cost(const Call& call, const Target& target) {
  const Shape& x = call.in(0).shape;
  const double pixels =
      x.has_rank() && x.rank() ? Shape(std::vector<Dim>(x.dims().begin(), x.dims().end() - 1)).known_elements() : 1;
  const double work = 2 * call.in(1).shape.known_elements();
  const ops::TransposedWindows windows = ops::transposed_windows(call);
  if (windows.apart()) return 1e-6 + std::max(target.compute(pixels * work, 0.4), target.stream(pixels * work * 2 / 8));
  auto results = static_cast<double>(call.in(1).shape[1].number().value_or(1));  // of a pixel
  for (const std::int64_t stride : windows.strides) results *= static_cast<double>(stride);
  return 1e-6 +
         std::max(target.compute(pixels * work, 0.7), target.stream(4 * (x.known_elements() + pixels * results)));
}

}  // namespace

const Kernel conv_transpose_avx512 = {
    .op = "ConvTranspose",
    .name = "cpu.conv_transpose_avx512",
    .needs = Isa::avx512,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) { return make(call, target, f32_avx512); },
};

const Kernel conv_transpose_avx2 = {
    .op = "ConvTranspose",
    .name = "cpu.conv_transpose_avx2",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) { return make(call, target, f32_avx2); },
};

}  // namespace modelflow::cpu
