// The kernels of dense and grouped convolutions of 8-bit numbers: panels of filters, packed weights, and how the output
// is cut into tasks.
#include "backends/cpu/qconv/dense.h"

#include <algorithm>
#include <cstring>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/scratch_tasks.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/qconv/kernels.h"
#include "src/core/bounded_pairs.h"

namespace modelflow::cpu {
namespace {

/// What differs between the instruction sets.
struct QDenseCode {
  const char* layout;
  std::int64_t (*next_vectors)(std::int64_t left);  ///< of the next panel
  std::int64_t word;                                ///< bytes of a filter that lie side by side
  std::int64_t multiple;                            ///< of which the bytes of a filter are
  std::int64_t pixels;                              ///< that stay together; 0: as many as a tile of the first panel has
  std::size_t (*scratch)(const QDenseRun&, const QDenseTask&);
  void (*block)(const QDenseRun&, const QDenseTask&, std::byte*);
  double ops;   ///< per second on one core, about
  bool copies;  ///< x in any case
};

// Four vectors per panel where that leaves no single one: tiles of 6 pixels x 64 filters and 9 x 48 are the fastest.
std::int64_t next_vectors_vnni(std::int64_t left) {
  if (left <= 4) return left;
  if (left == 5 || left == 6) return 3;
  return left % 4 == 0 || left % 3 != 0 ? 4 : 3;
}

std::int64_t one_vector(std::int64_t) { return 1; }

constexpr QDenseCode kVnni = {"qconv_dense_vnni",  next_vectors_vnni, 4,    4,    0,
                              qdense_scratch_vnni, qdense_block_vnni, 5e11, false};
constexpr QDenseCode kAmx = {"qconv_dense_amx",
                             [](std::int64_t left) { return std::min(left, std::int64_t{2}); },
                             4,
                             64,
                             32,
                             qdense_scratch_amx,
                             qdense_block_amx,
                             2e12,
                             false};
constexpr QDenseCode kQuads = {"qconv_dense_quads",     one_vector, 4,   4, 6, qdense_scratch_quads_avx2,
                               qdense_block_quads_avx2, 2e11,       true};
constexpr QDenseCode kBounded = {"qconv_dense_quads",       one_vector, 4,   4, 6, qdense_scratch_bounded_avx2,
                                 qdense_block_bounded_avx2, 1.5e11,     true};
constexpr QDenseCode kPairs = {"qconv_dense_pairs",     one_vector, 2,   2, 6, qdense_scratch_pairs_avx2,
                               qdense_block_pairs_avx2, 1e11,       true};

std::vector<QPanel> split(const ConvGeometry& g, std::int64_t group_channels, std::int64_t filter_bytes,
                          const QDenseCode& code) {
  std::vector<QPanel> panels;
  const std::int64_t groups = g.channels / group_channels, filters = g.filters / groups;
  std::int64_t offset = 0, scales = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t first = 0, left = ceil_div(filters, 16); left > 0;) {
      const std::int64_t vectors = code.next_vectors(left);
      panels.push_back({group * filters + first, vectors, std::min(filters - first, 16 * vectors),
                        group * group_channels, offset, scales});
      first += 16 * vectors, left -= vectors;
      scales += 16 * vectors, offset += 16 * vectors * filter_bytes;
    }
  }
  return panels;
}

// How the bytes of a filter lie: `segments` runs of `length` bytes, each filled up to whole words.
struct FilterShape {
  std::int64_t channels, taps, joined, word, multiple;  // joined: taps that one segment covers
  std::int64_t segments() const { return taps / joined; }
  std::int64_t length() const { return ceil_div(channels * joined, word) * word; }
  std::int64_t bytes() const { return ceil_div(segments() * length(), multiple) * multiple; }
};

// Byte k of a segment of a filter of w [M, C, taps].
std::int8_t byte_of(const std::int8_t* w, const FilterShape& s, std::int64_t filter, std::int64_t segment,
                    std::int64_t k) {
  const bool exists = k < s.channels * s.joined && segment < s.segments();
  const std::int64_t tap = segment * s.joined + k / s.channels;
  return exists ? w[(filter * s.channels + k % s.channels) * s.taps + tap] : std::int8_t{0};
}

// [M, C, taps] to what QPanel describes.
void pack(const std::int8_t* w, const FilterShape& s, const QPanel& panel, std::int8_t* at) {
  for (std::int64_t i = 0; i < s.bytes(); i += s.word) {
    const std::int64_t segment = i / s.length(), first = i % s.length();
    for (std::int64_t f = 0; f < 16 * panel.vectors; ++f)
      for (std::int64_t k = first; k < first + s.word; ++k)
        *at++ = f < panel.filters ? byte_of(w, s, panel.first + f, segment, k) : std::int8_t{0};
  }
}

// How the output is cut: `pixels` of a block, `panels` of a task.
struct Cut {
  std::int64_t pixels, panels;
};

// What a block reads stays in L2 beside the weights of a panel.
std::int64_t block_bytes(const Target& target) { return static_cast<std::int64_t>(near_bytes(target, 384 << 10)); }

// Seconds that products and what is done with their sums take on one core, about.
double seconds_of(double ops, double results, const QDenseCode& code) { return ops / code.ops + results * 2.5e-10; }

// More tasks than threads, when the work is worth it: some 5 us each. Of the ways to get
// there the one that moves the fewest bytes: every block reads all weights, every group of panels reads all pixels.
// `unit`: pixels that stay together.
Cut cut(const ConvGeometry& g, double products, std::int64_t panels, std::int64_t unit, std::int64_t threads,
        std::int64_t block_bytes, const QDenseCode& code) {
  const std::int64_t pixels = g.batch * g.rows * g.columns;
  const double results = static_cast<double>(pixels) * static_cast<double>(g.filters);
  const std::int64_t wanted = conv_tasks(seconds_of(2 * products * results, results, code) / 2.5e-6, threads);
  const std::int64_t steps = g.channels * (g.kernel_h == 1 ? 1 : g.stride_h) * (g.kernel_w == 1 ? 1 : g.stride_w);
  const std::int64_t per_pixel = steps * 4 / code.word;  // words of two have steps of 16 bits
  const std::int64_t by_cache = std::max(block_bytes / per_pixel / unit, std::int64_t{1}) * unit;
  Cut best{};
  double least = 0;
  for (std::int64_t count = 1; count <= wanted; ++count) {
    Cut c{std::min(ceil_div(ceil_div(pixels, count), unit) * unit, by_cache), 0};
    const std::int64_t blocks = ceil_div(pixels, c.pixels),
                       groups = std::clamp<std::int64_t>(ceil_div(wanted, blocks), 1, panels);
    c.panels = ceil_div(panels, groups);
    const double bytes = static_cast<double>(blocks) * products * static_cast<double>(g.filters) +
                         static_cast<double>(groups) * static_cast<double>(pixels * per_pixel);
    const bool enough = blocks * groups >= wanted;
    if (best.panels && (bytes >= least || !enough)) continue;
    best = c;
    least = enough ? bytes : 1e300;
  }
  return best;
}

/// Of an image of one pixel.
ConvGeometry geometry_of_weights(const ops::ConvAttrs& conv, const Dims& w) {
  Dims x(conv.rank() + 2, 1);
  x[conv.x_last ? conv.rank() + 1 : 1] = w[1] * conv.group;
  return conv_geometry(conv, w, x);
}

/// How the bytes of a filter lie. Extents of x do not matter here.
FilterShape filter_shape(const ops::ConvAttrs& conv, const Tensor& w, const QDenseCode& code) {
  FilterShape s{w.dims()[1], w.elements() / w.dims()[0] / w.dims()[1], 1, code.word, code.multiple};
  const ConvGeometry g = geometry_of_weights(conv, w.dims());
  if (joins_columns(g, s.channels, code.copies || copies_input(g, s.channels))) s.joined = g.kernel_w;
  return s;
}

/// Whether neighbours in the words of such filters are bounded (src/core/bounded_pairs.h).
bool pairs_are_bounded(const Call& call, const QDenseCode& code) {
  const Tensor& w = *call.in(1).constant;
  const FilterShape s = filter_shape(QConvNode(call).attrs.conv, w, code);
  const std::int8_t* from = w.as<std::int8_t>().data();
  for (std::int64_t filter = 0; filter < w.dims()[0]; ++filter)
    for (std::int64_t segment = 0; segment < s.segments(); ++segment)
      for (std::int64_t k = 0; k < s.length(); k += 2)
        if (!bounded_pair(byte_of(from, s, filter, segment, k), byte_of(from, s, filter, segment, k + 1))) return false;
  return true;
}

class Dense : public Implementation {
 public:
  Dense(const Call& call, const QDenseCode& code, const Target& target)
      : node_(call), code_(code), block_bytes_(block_bytes(target)) {
    const Tensor& w = *call.in(1).constant;
    const ops::ConvAttrs& conv = node_.attrs.conv;
    weights_dims_ = w.dims();
    shape_ = filter_shape(conv, w, code);
    const ConvGeometry g = geometry_of_weights(conv, w.dims());
    panels_ = split(g, shape_.channels, shape_.bytes(), code);
    const QScales scales(call, node_);
    for (const QPanel& panel : panels_) {
      for (std::int64_t i = panel.first; i < panel.first + 16 * panel.vectors; ++i) {
        const bool exists = i < panel.first + panel.filters;
        begin_.push_back(exists ? scales.begin[static_cast<std::size_t>(i)] : 0);
        scale_.push_back(exists ? scales.scale[static_cast<std::size_t>(i)] : 0);
      }
    }
    zeros_.assign(static_cast<std::size_t>(g.channels) + 3, static_cast<std::uint8_t>(node_.attrs.x.zero_point));
    const auto bytes = static_cast<std::size_t>(panels_.back().offset + 16 * panels_.back().vectors * shape_.bytes());
    const std::string layout =
        std::string(code.layout) + " " + std::to_string(shape_.joined) + " " + std::to_string(conv.group);
    weights_ = packed_weights(w, layout, bytes, [&](std::byte* to) {
      for (const QPanel& panel : panels_)
        pack(w.as<std::int8_t>().data(), shape_, panel, reinterpret_cast<std::int8_t*>(to) + panel.offset);
    });
  }

  void run(Invocation& call) const override {
    const QConvOperands o = node_.operands(call);
    const ConvGeometry g = conv_geometry(node_.attrs.conv, weights_dims_, o.x_dims);
    expect_extents_of_31_bits(g);
    const std::int64_t pixels = g.batch * g.rows * g.columns, panels = static_cast<std::int64_t>(panels_.size());
    if (pixels == 0) return;
    const QDenseRun run{g,
                        o.x,
                        o.added,
                        o.y,
                        node_.epilogue,
                        static_cast<std::uint8_t>(node_.attrs.x.zero_point),
                        zeros_.data(),
                        reinterpret_cast<const std::int8_t*>(weights_.get()),
                        panels_.data(),
                        begin_.data(),
                        scale_.data(),
                        shape_.channels,
                        copies(g),
                        shape_.joined > 1,
                        block_bytes_ * 2 / 3};
    const bool by_image = run.copied || !g.y_last;
    const std::int64_t image = g.rows * g.columns;
    const std::int64_t pixels_of_tile = code_.pixels ? code_.pixels : kQTileRows[panels_[0].vectors];
    const std::int64_t unit = by_image ? g.columns : pixels_of_tile;
    ConvGeometry one = g;
    if (by_image) one.batch = 1;
    const auto threads = static_cast<std::int64_t>(call.threads());
    const Cut c = cut(one, static_cast<double>(shape_.bytes()), panels, unit, threads, block_bytes_, code_);
    const std::int64_t span = by_image ? image : pixels, blocks = ceil_div(span, c.pixels),
                       groups = ceil_div(panels, c.panels);
    const auto task_of = [&](std::int64_t i) {
      const std::int64_t group = i % groups, block = i / groups % blocks, from = i / groups / blocks * span;
      return QDenseTask{from + block * c.pixels, from + std::min(span, (block + 1) * c.pixels), group * c.panels,
                        std::min(panels, (group + 1) * c.panels)};
    };
    std::size_t bytes = 0;
    for (std::int64_t i = 0; i < groups * blocks; ++i) bytes = std::max(bytes, code_.scratch(run, task_of(i)));
    run_with_scratch(call, groups * blocks * (pixels / span), bytes,
                     [&](std::int64_t i, std::byte* scratch) { code_.block(run, task_of(i), scratch); });
  }

 private:
  bool copies(const ConvGeometry& g) const { return code_.copies || copies_input(g, shape_.channels); }

  QConvNode node_;
  const QDenseCode& code_;
  std::int64_t block_bytes_;
  Dims weights_dims_;
  FilterShape shape_;
  std::vector<QPanel> panels_;
  std::vector<std::int32_t> begin_;
  std::vector<float> scale_;
  std::vector<std::uint8_t> zeros_;
  std::shared_ptr<const std::byte> weights_;
};

// Groups of few filters leave most of a vector empty, and are several times as fast as plain loops even so.
Verdict accepts(const Call& call, const Target& target) { return accepts_qconv_vectors(call, target); }

/// Bytes of a filter from which tiles are full enough, and of a segment from which windows are worth copying.
constexpr std::int64_t kLeastBytes = 48, kLeastSegment = 32;

Verdict accepts_amx(const Call& call, const Target& target) {
  if (Verdict verdict = accepts(call, target); !verdict) return verdict;
  if (CallAttrs(call).integer("group") > 1) return no("has groups", call.in(1).name);
  const Tensor& w = *call.in(1).constant;
  const std::int64_t bytes = w.elements() / w.dims()[0], channels = w.dims()[1];
  if (bytes < kLeastBytes) return no("sums are short", call.in(1).name);
  const bool copied = bytes > channels && channels * w.dims().back() < kLeastSegment;
  return copied ? no("windows lie in short pieces", call.in(1).name) : yes();
}

}  // namespace

const Kernel qconv_dense_amx = {
    .op = "QConv",
    .name = "cpu.qconv_dense_amx",
    .needs = Isa::amx,
    .accepts = accepts_amx,
    .cost = [](const Call& call, const Target& target) { return qconv_cost(call, target, 3); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Dense>(call, kAmx, target);
    },
};

const Kernel qconv_dense_vnni = {
    .op = "QConv",
    .name = "cpu.qconv_dense_vnni",
    .needs = Isa::avx512_vnni,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return qconv_cost(call, target, 0.75); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Dense>(call, kVnni, target);
    },
};

const Kernel qconv_dense_avx_vnni = {
    .op = "QConv",
    .name = "cpu.qconv_dense_avx_vnni",
    .needs = Isa::avx_vnni,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return qconv_cost(call, target, 0.7); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Dense>(call, kQuads, target);
    },
};

const Kernel qconv_dense_avx2 = {
    .op = "QConv",
    .name = "cpu.qconv_dense_avx2",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = [](const Call& call, const Target& target) { return qconv_cost(call, target, 0.3); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Dense>(call, pairs_are_bounded(call, kBounded) ? kBounded : kPairs, target);
    },
};

}  // namespace modelflow::cpu
