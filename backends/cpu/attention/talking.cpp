// Attention whose heads are mixed before the softmax and behind it: the scores of all heads for a few queries at a time
// stay in L2 from the first product to the last. Queries, keys and values are read where they lie.
#include "backends/cpu/attention/talking.h"

#include <algorithm>

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/side_by_side.h"
#include "backends/cpu/frame/near.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/ops/talking_heads.h"

namespace modelflow::cpu {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, "TalkingHeads: " + message);
}

constexpr std::size_t kPadded = 16;
constexpr std::size_t kTileRows = 6;  ///< of products

std::size_t padded(std::size_t floats) { return (floats + kPadded - 1) / kPadded * kPadded; }

/// A call in numbers.
struct Problem : SideBySide {
  const float *before = nullptr, *after = nullptr, *bias = nullptr;
  float* y = nullptr;
  std::size_t queries = 0;           ///< in a block
  std::size_t keys = 0, values = 0;  ///< floats of a head when they are packed
  const float* packed = nullptr;     ///< keys and values of each head

  std::size_t step() const { return padded(tokens); }     ///< floats from query to query of the scores of a head
  std::size_t plane() const { return queries * step(); }  ///< from head to head
  std::size_t blocks() const { return (tokens + queries - 1) / queries; }
};

class TalkingHeads : public Implementation {
 public:
  TalkingHeads(const Call& call, const Target& target, const F32Code& products, void (*mix)(const HeadMixing&))
      : attrs_(call),
        products_(products),
        blocks_(products.blocks(target)),
        softmax_(vector_code(target).softmax),
        mix_(mix),
        near_(near_bytes(target, 256 << 10)) {}

  void run(Invocation& call) const override {
    Problem p = read(call);
    const std::size_t units = p.batch * p.heads, threads = call.threads();
    if (units * p.tokens * p.size == 0) return;
    // Scores before and behind the mixing.
    p.queries = near_ / (2 * p.heads * p.step() * sizeof(float)) / kTileRows * kTileRows;
    p.queries = std::min(std::clamp(p.queries, kTileRows, 8 * kTileRows), p.tokens);
    p.keys = padded(products_.packed_floats(p.size, p.tokens));
    p.values = padded(products_.packed_floats(p.tokens, p.size));
    const double flops = 4.0 * static_cast<double>(units * p.tokens * p.tokens) * static_cast<double>(p.size + p.heads);
    const bool small = flops < 4e5 || threads == 1;
    const std::size_t items = p.batch * p.blocks(), tasks = small ? 1 : std::min(items, 4 * threads);
    const std::size_t own = 2 * p.heads * p.plane();
    auto* memory = reinterpret_cast<float*>(call.scratch((units * (p.keys + p.values) + tasks * own) * sizeof(float)));
    float* rest = memory + units * (p.keys + p.values);
    share(call, units, small ? 1 : std::min(units, 2 * threads), [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t unit = begin; unit < end; ++unit) pack(p, unit, memory + unit * (p.keys + p.values));
    });
    p.packed = memory;
    share(call, items, tasks, [&](std::size_t begin, std::size_t end, std::size_t task) {
      for (std::size_t i = begin; i < end; ++i) block(p, i / p.blocks(), i % p.blocks(), rest + task * own);
    });
  }

 private:
  Problem read(Invocation& call) const {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    Problem p{read_side_by_side("TalkingHeads", call, attrs_.heads, attrs_.packed)};
    const Dims square = {attrs_.heads, attrs_.heads};
    for (std::size_t i = attrs_.operands(); i < attrs_.inputs(); ++i)
      if (!std::ranges::equal(call.input(i).dims, i == attrs_.bias_index() ? Dims{attrs_.heads} : square))
        fail("what mixes the heads is of other extents than they");
    const auto floats = [&](std::size_t i) { return static_cast<const float*>(call.input(i).data); };
    p.before = floats(attrs_.before_index()), p.after = floats(attrs_.after_index());
    if (attrs_.has_bias) p.bias = floats(attrs_.bias_index());
    p.y = static_cast<float*>(
        call.output(0, Dims{call.input(0).dims[0], call.input(0).dims[1], static_cast<std::int64_t>(p.width)}));
    return p;
  }

  /// The keys and values of a head as products read them.
  void pack(const Problem& p, std::size_t unit, float* to) const {
    const std::size_t at = unit / p.heads * p.tokens * p.row + unit % p.heads * p.size;
    products_.pack_b(p.k + at, p.row, true, p.size, p.tokens, 0, products_.panels(p.tokens), to);
    products_.pack_b(p.v + at, p.row, false, p.tokens, p.size, 0, products_.panels(p.size), to + p.keys);
  }

  Gemm product(std::size_t m, std::size_t n, std::size_t k) const {
    Gemm g;
    g.m = m, g.n = n, g.k = k;
    g.blocks = blocks_;
    return g;
  }

  void multiply(const Gemm& g) const { products_.gemm(g, 0, g.m, 0, g.n, nullptr); }

  /// Some queries of an image. `own`: scores of all heads, twice.
  void block(const Problem& p, std::size_t image, std::size_t at, float* own) const {
    const std::size_t first = at * p.queries, count = std::min(p.queries, p.tokens - first), row = p.row;
    const std::size_t token = image * p.tokens + first;
    float *scores = own, *mixed = own + p.heads * p.plane();
    const float* packed = p.packed + image * p.heads * (p.keys + p.values);
    Gemm g = product(count, p.tokens, p.size);
    g.lda = row, g.ldb = products_.panel, g.panel = products_.panel * p.size, g.ldc = p.step();
    g.scale = attrs_.scale;
    for (std::size_t head = 0; head < p.heads; ++head) {
      g.a = p.q + token * row + head * p.size;
      g.b = packed + head * (p.keys + p.values);
      g.c = scores + head * p.plane();
      multiply(g);
    }
    for (std::size_t i = 0; i < count; ++i) weigh(p, scores + i * p.step(), mixed + i * p.step());
    g = product(count, p.size, p.tokens);
    g.lda = p.step(), g.ldb = products_.panel, g.panel = products_.panel * p.tokens, g.ldc = p.width;
    for (std::size_t head = 0; head < p.heads; ++head) {
      g.a = scores + head * p.plane();
      g.b = packed + head * (p.keys + p.values) + p.keys;
      g.c = p.y + token * p.width + head * p.size;
      multiply(g);
    }
  }

  /// The scores of one query, a row for each head: mixed, weighed against each other, and the weights mixed, in place.
  void weigh(const Problem& p, float* scores, float* mixed) const {
    mix(p, p.before, nullptr, scores, mixed);
    for (std::size_t head = 0; head < p.heads; ++head) {
      SoftmaxRow softmax;
      softmax.n = p.tokens;
      softmax.x = softmax.y = mixed + head * p.plane();
      softmax_.row(softmax);
    }
    mix(p, p.after, p.bias, mixed, scores);
  }

  void mix(const Problem& p, const float* weights, const float* bias, const float* from, float* to) const {
    mix_({p.heads, p.tokens, weights, bias, from, to, p.plane()});
  }

  ops::TalkingHeadsAttrs attrs_;
  const F32Code& products_;
  GemmBlocks blocks_;
  const SoftmaxLoops& softmax_;
  void (*mix_)(const HeadMixing&);
  std::size_t near_;
};

}  // namespace

const Kernel talking_heads_avx512 = {
    .op = "TalkingHeads",
    .name = "cpu.talking_heads_avx512",
    .needs = Isa::avx512,
    .accepts = accepts_float32,
    .cost = cost_side_by_side,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<TalkingHeads>(call, target, f32_avx512, mix_heads_avx512);
    },
};

const Kernel talking_heads_avx2 = {
    .op = "TalkingHeads",
    .name = "cpu.talking_heads_avx2",
    .needs = Isa::avx2,
    .accepts = accepts_float32,
    .cost = cost_side_by_side,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<TalkingHeads>(call, target, f32_avx2, mix_heads_avx2);
    },
};

}  // namespace modelflow::cpu
