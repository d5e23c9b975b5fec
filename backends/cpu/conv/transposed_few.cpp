// The kernel of transposed convolutions whose windows overlap and whose filters are few (images and masks at the end of
// a network): a register would hold a few results of a phase only, so the results of whole windows are made, one line
// of the window and one input line at a time, and added where they meet.
#include <algorithm>

#include "backends/cpu/conv/transposed.h"
#include "backends/cpu/conv/transposed_problem.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/weight_cache.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kMostRows = 288, kLeastRows = 24;

std::int64_t number(std::size_t n) { return static_cast<std::int64_t>(n); }

class FewFilters : public Implementation {
 public:
  FewFilters(const Call& call, const Target& target, const F32Code& code)
      : code_(code), blocks_(code.blocks(target)), node_(call), columns_(node_.axis[2].kernel * node_.m) {
    const Tensor& w = *call.in(1).constant;
    const std::size_t lines = node_.axis[0].kernel * node_.axis[1].kernel;
    packed_ = packed_weights(w, "few " + std::string(code.layout), lines * line_floats() * sizeof(float),
                             [&](std::byte* out) { pack(w, lines, reinterpret_cast<float*>(out)); });
  }

  void run(Invocation& call) const override {
    ConvTransposeRun r = node_.read(call);
    if (r.lines() * r.out[2] * node_.m == 0) return;
    const std::size_t wanted = node_.cut(r, call, kMostRows, kLeastRows), items = r.lines() * r.cuts;
    const WindowAxis& axis = node_.axis[2];
    const std::size_t inputs = std::min(r.in[2], r.rows_of_cut() + axis.kernel / axis.stride + 2);
    const std::size_t parts = std::min(wanted, items), each = (inputs * columns_ + 15) / 16 * 16;
    auto* scratch = reinterpret_cast<float*>(call.scratch(parts * each * sizeof(float)));
    share(call, items, parts, [&](std::size_t begin, std::size_t end, std::size_t task) {
      for (std::size_t i = begin; i < end; ++i) fill(r, i / r.cuts, i % r.cuts, scratch + task * each);
    });
  }

 private:
  std::size_t line_floats() const { return code_.packed_floats(node_.channels, columns_); }

  /// [C, M, kd, kh, kw] -> for each line of the window [C, kw * M].
  void pack(const Tensor& w, std::size_t lines, float* out) const {
    const auto from = w.as<float>();
    const std::size_t kw = node_.axis[2].kernel, m = node_.m;
    std::vector<float> matrix(node_.channels * columns_);
    for (std::size_t line = 0; line < lines; ++line) {
      float* to = matrix.data();
      for (std::size_t c = 0; c < node_.channels; ++c)
        for (std::size_t i = 0; i < columns_; ++i) *to++ = from[((c * m + i % m) * lines + line) * kw + i / m];
      code_.pack_b(matrix.data(), columns_, false, node_.channels, columns_, 0, code_.panels(columns_),
                   out + line * line_floats());
    }
  }

  /// Some rows of an output line.
  void fill(const ConvTransposeRun& r, std::size_t line, std::size_t cut, float* scratch) const {
    const std::size_t stride = node_.axis[2].stride, begin = r.first_row(cut) * stride;
    const std::size_t end = std::min(r.first_row(cut + 1) * stride, r.out[2]), image = line / (r.out[0] * r.out[1]);
    const std::size_t y_d = line / r.out[1] % r.out[0], y_h = line % r.out[1];
    const WindowAxis &depth = node_.axis[0], &height = node_.axis[1];
    const Phase d = depth.phase(y_d % depth.stride), h = height.phase(y_h % height.stride);
    float* y = r.y + (line * r.out[2] + begin) * node_.m;
    start(y, (end - begin) * node_.m);
    for (std::size_t i = 0; i < d.taps; ++i) {
      for (std::size_t j = 0; j < h.taps; ++j) {
        const float* x =
            node_.line(r, image, number(y_d / depth.stride + i) + d.shift, number(y_h / height.stride + j) + h.shift);
        if (x) add_line(x, r.in[2], d.tap(i) * height.kernel + h.tap(j), begin, end, y, scratch);
      }
    }
    finish(y, (end - begin) * node_.m);
  }

  void start(float* y, std::size_t count) const {
    if (node_.bias.empty()) return void(std::fill_n(y, count, 0.0f));
    for (std::size_t i = 0; i < count; i += node_.m) std::copy_n(node_.bias.data(), node_.m, y + i);
  }

  /// One line of the window of one input line, onto the results [begin, end).
  void add_line(const float* x, std::size_t width, std::size_t line, std::size_t begin, std::size_t end, float* y,
                float* scratch) const {
    const WindowAxis& axis = node_.axis[2];
    // Window i begins at i * stride - pad.
    const std::size_t from = begin + axis.pad + 1,
                      first = from > axis.kernel ? (from - axis.kernel + axis.stride - 1) / axis.stride : 0;
    const std::size_t last = std::min(width, (end - 1 + axis.pad) / axis.stride + 1);
    if (first >= last) return;
    Gemm g;
    g.m = last - first, g.n = columns_, g.k = node_.channels;
    g.a = x + first * node_.channels, g.lda = node_.channels;
    g.b = reinterpret_cast<const float*>(packed_.get()) + line * line_floats();
    g.ldb = code_.panel, g.panel = code_.panel * g.k;
    g.c = scratch, g.ldc = columns_;
    g.blocks = blocks_;
    code_.gemm(g, 0, g.m, 0, g.n, nullptr);
    const std::int64_t count = number((end - begin) * node_.m), step = number(axis.stride * node_.m);
    std::int64_t at = (number(first * axis.stride) - number(axis.pad + begin)) * number(node_.m);
    for (std::size_t i = first; i < last; ++i, at += step, scratch += columns_) {
      const std::int64_t left = std::max<std::int64_t>(-at, 0), right = std::min(number(columns_), count - at);
      for (std::int64_t k = left; k < right; ++k) y[at + k] += scratch[k];
    }
  }

  /// The activation is the end of a product without depth, to which y is added.
  void finish(float* y, std::size_t count) const {
    if (node_.activation.kind == Activation::none && !node_.activation.affine()) return;
    Gemm g;
    g.m = 1, g.n = count;
    g.a = g.b = y, g.ldb = g.panel = code_.panel;
    g.c = y, g.ldc = count;
    g.residual = y, g.ldr = count;
    g.activation = node_.activation;
    g.blocks = blocks_;
    code_.gemm(g, 0, 1, 0, count, nullptr);
  }

  const F32Code& code_;
  GemmBlocks blocks_;
  ConvTransposeNode node_;
  std::size_t columns_;  ///< of a line of the window
  std::shared_ptr<const std::byte> packed_;
};

}  // namespace

bool few_filters(const Call& call, const F32Code& code) {
  const ConvTransposeNode node(call);
  const std::size_t lanes = code.panel / 2;
  const auto registers = [&](std::size_t results) { return (results * node.m + lanes - 1) / lanes; };
  // Steps of a product for each pixel and line of the window; making windows meet, and a product more, take some too.
  const std::size_t window = node.axis[2].kernel, together = registers(window) * node.channels + window * node.m + 16;
  std::size_t apart = 0;
  for (const PhaseGroup& group : phase_groups(node.axis[2]))
    apart += registers(group.size) * group.first.taps * node.channels + 16;
  return together < apart;
}

std::unique_ptr<Implementation> few_conv_transpose(const Call& call, const Target& target, const F32Code& code) {
  return std::make_unique<FewFilters>(call, target, code);
}

}  // namespace modelflow::cpu
