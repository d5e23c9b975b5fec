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

constexpr std::size_t kMostRows = 96, kLeastRows = 24;
constexpr std::size_t kNearFloats = 1 << 14;  // of results, which are read and written again

/// The windows of neighbouring inputs, one after the other.
struct Windows {
  const float* results;
  std::size_t size;  ///< floats from one to the next
  std::size_t count, kernel, stride, m;

  /// Onto y, which has `extent` results: the first begins at result `at` of it, which may be in front of the first.
  void add(float* y, std::int64_t at, std::int64_t extent) const {
    switch (m) {
      case 1:
        return add_taps<1>(y, at, extent);
      case 2:
        return add_taps<2>(y, at, extent);
      case 3:
        return add_taps<3>(y, at, extent);
      case 4:
        return add_taps<4>(y, at, extent);
      default:
        return add_whole(y, at, extent);
    }
  }

 private:
  /// Tap by tap: of short windows each would wait for what the one before it has written.
  template <std::size_t M>
  void add_taps(float* y, std::int64_t at, std::int64_t extent) const {
    const std::int64_t step = number(stride);
    for (std::size_t tap = 0; tap < kernel; ++tap, ++at) {
      const std::int64_t begin = at < 0 ? (step - 1 - at) / step : 0;
      const std::int64_t end = at < extent ? std::min(number(count), (extent - at + step - 1) / step) : 0;
      if (begin >= end) continue;
      const float* from = results + static_cast<std::size_t>(begin) * size + tap * M;
      float* to = y + static_cast<std::size_t>(at + begin * step) * M;
      for (std::int64_t i = begin; i < end; ++i, from += size, to += stride * M)
        for (std::size_t c = 0; c < M; ++c) to[c] += from[c];
    }
  }

  void add_whole(float* y, std::int64_t at, std::int64_t extent) const {
    const std::int64_t whole = number(kernel * m), step = number(stride * m), all = extent * number(m);
    const float* from = results;
    at *= number(m);
    for (std::size_t i = 0; i < count; ++i, at += step, from += size) {
      const std::int64_t left = std::max<std::int64_t>(-at, 0), right = std::min(whole, all - at);
      for (std::int64_t k = left; k < right; ++k) y[at + k] += from[k];
    }
  }
};

/// The places [begin, end) of an axis.
struct Range {
  std::size_t begin, end;
};

/// Inputs whose windows reach them.
Range reaching(const WindowAxis& axis, std::size_t inputs, const Range& results) {
  // Window i begins at i * stride - pad.
  const std::size_t from = results.begin + axis.pad + 1, last = (results.end - 1 + axis.pad) / axis.stride + 1;
  return {from > axis.kernel ? (from - axis.kernel + axis.stride - 1) / axis.stride : 0, std::min(inputs, last)};
}

class FewFilters : public Implementation {
 public:
  FewFilters(const Call& call, const Target& target, const F32Code& code)
      : code_(code),
        blocks_(code.blocks(target)),
        node_(call),
        line_(node_.axis[2].kernel * node_.m),
        columns_(node_.axis[1].kernel * line_) {
    const Tensor& w = *call.in(1).constant;
    packed_ = packed_weights(w, "few " + std::string(code.layout),
                             node_.axis[0].kernel * code.packed_floats(node_.channels, columns_) * sizeof(float),
                             [&](std::byte* out) { pack(w, reinterpret_cast<float*>(out)); });
  }

  void run(Invocation& call) const override {
    ConvTransposeRun r = node_.read(call);
    if (r.lines() * r.out[2] * node_.m == 0) return;
    const std::size_t wanted = node_.cut(r, call, kMostRows, kLeastRows), planes = r.batch * r.out[0];
    // Blocks of lines: the products of an input line are made once for all lines of a block.
    const std::size_t near = std::max<std::size_t>(kNearFloats / (r.rows_of_cut() * node_.axis[2].stride * node_.m), 1);
    const std::size_t least = std::min(r.out[1], (wanted + planes * r.cuts - 1) / (planes * r.cuts));
    const std::size_t blocks = std::max((r.out[1] + near - 1) / near, least), items = planes * blocks * r.cuts;
    const WindowAxis& axis = node_.axis[2];
    const std::size_t inputs = std::min(r.in[2], r.rows_of_cut() + axis.kernel / axis.stride + 2);
    const std::size_t parts = std::min(wanted, items), each = (inputs * columns_ + 15) / 16 * 16;
    auto* scratch = reinterpret_cast<float*>(call.scratch(parts * each * sizeof(float)));
    share(call, items, parts, [&](std::size_t begin, std::size_t end, std::size_t task) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t cut = i % r.cuts, block = i / r.cuts % blocks;
        const Block at{i / r.cuts / blocks,
                       {r.out[1] * block / blocks, r.out[1] * (block + 1) / blocks},
                       {r.first_row(cut) * axis.stride, std::min(r.first_row(cut + 1) * axis.stride, r.out[2])}};
        fill(r, at, scratch + task * each);
      }
    });
  }

 private:
  /// A part of a plane of the result.
  struct Block {
    std::size_t plane;
    Range lines, results;
    std::size_t width() const { return results.end - results.begin; }
  };

  /// [C, M, kd, kh, kw] -> for each plane of the window [C, kh * kw * M].
  void pack(const Tensor& w, float* out) const {
    const auto from = w.as<float>();
    const std::size_t m = node_.m, planes = node_.axis[0].kernel, plane = node_.axis[1].kernel * node_.axis[2].kernel;
    std::vector<float> matrix(node_.channels * columns_);
    for (std::size_t d = 0; d < planes; ++d) {
      float* to = matrix.data();
      for (std::size_t c = 0; c < node_.channels; ++c)
        for (std::size_t i = 0; i < columns_; ++i) *to++ = from[((c * m + i % m) * planes + d) * plane + i / m];
      code_.pack_b(matrix.data(), columns_, false, node_.channels, columns_, 0, code_.panels(columns_),
                   out + d * code_.packed_floats(node_.channels, columns_));
    }
  }

  float* line_of(const ConvTransposeRun& r, const Block& block, std::size_t h) const {
    return r.y + ((block.plane * r.out[1] + h) * r.out[2] + block.results.begin) * node_.m;
  }

  void fill(const ConvTransposeRun& r, const Block& block, float* scratch) const {
    for (std::size_t h = block.lines.begin; h < block.lines.end; ++h) start(line_of(r, block, h), block.width());
    const WindowAxis& depth = node_.axis[0];
    const std::size_t image = block.plane / r.out[0], y_d = block.plane % r.out[0];
    const Phase d = depth.phase(y_d % depth.stride);
    const Range lines = reaching(node_.axis[1], r.in[1], block.lines);
    for (std::size_t i = 0; i < d.taps; ++i) {
      for (std::size_t h = lines.begin; h < lines.end; ++h) {
        const float* x = node_.line(r, image, number(y_d / depth.stride + i) + d.shift, number(h));
        if (x) add_line(r, block, x, h, d.tap(i), scratch);
      }
    }
    for (std::size_t h = block.lines.begin; h < block.lines.end; ++h)
      finish(line_of(r, block, h), block.width() * node_.m);
  }

  void start(float* y, std::size_t results) const {
    if (node_.bias.empty()) return void(std::fill_n(y, results * node_.m, 0.0f));
    for (std::size_t i = 0; i < results; ++i) std::copy_n(node_.bias.data(), node_.m, y + i * node_.m);
  }

  /// The windows of input line `line`, of which x is the first pixel.
  void add_line(const ConvTransposeRun& r, const Block& block, const float* x, std::size_t line, std::size_t tap,
                float* scratch) const {
    const WindowAxis &axis = node_.axis[2], &height = node_.axis[1];
    const Range inputs = reaching(axis, r.in[2], block.results);
    if (inputs.begin >= inputs.end) return;
    Gemm g;
    g.m = inputs.end - inputs.begin, g.n = columns_, g.k = node_.channels;
    g.a = x + inputs.begin * node_.channels, g.lda = node_.channels;
    g.b = reinterpret_cast<const float*>(packed_.get()) + tap * code_.packed_floats(node_.channels, columns_);
    g.ldb = code_.panel, g.panel = code_.panel * g.k;
    g.c = scratch, g.ldc = columns_;
    g.blocks = blocks_;
    code_.gemm(g, 0, g.m, 0, g.n, nullptr);
    const std::int64_t at = number(inputs.begin * axis.stride) - number(axis.pad + block.results.begin);
    for (std::size_t i = 0; i < height.kernel; ++i) {
      const std::size_t padded = line * height.stride + i;
      if (padded < block.lines.begin + height.pad || padded >= block.lines.end + height.pad) continue;
      const Windows windows{scratch + i * line_, columns_, g.m, axis.kernel, axis.stride, node_.m};
      windows.add(line_of(r, block, padded - height.pad), at, number(block.width()));
    }
  }

  /// The activation is the end of a product without depth, to which y is added (as what C holds is between its depths).
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
  std::size_t line_, columns_;  ///< results of a line of the window, of a plane of it
  std::shared_ptr<const std::byte> packed_;
};

}  // namespace

bool few_filters(const Call& call, const F32Code& code) {
  const ConvTransposeNode node(call);
  const std::size_t lanes = code.panel / 2;
  // In steps of a product for each pixel and plane of the window; a register alone waits for its sums.
  const auto product = [&](std::size_t results) {
    const std::size_t registers = (results * node.m + lanes - 1) / lanes;
    return static_cast<double>(node.channels) * (registers == 1 ? 1.4 : static_cast<double>(registers));
  };
  constexpr double kProduct = 16, kAdded = 2.5;  // a product more, a result that is added
  const std::size_t window = node.axis[1].kernel * node.axis[2].kernel;
  double apart = 0;
  for (const PhaseGroup& group : phase_groups(node.axis[2]))
    apart += product(group.size) * static_cast<double>(group.first.taps) + kProduct;
  return product(window) + kProduct + kAdded * static_cast<double>(window * node.m) <
         apart * static_cast<double>(node.axis[1].kernel);
}

std::unique_ptr<Implementation> few_conv_transpose(const Call& call, const Target& target, const F32Code& code) {
  return std::make_unique<FewFilters>(call, target, code);
}

}  // namespace modelflow::cpu
