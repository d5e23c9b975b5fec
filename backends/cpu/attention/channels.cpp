// Attention of channels to channels: scores over all tokens, a softmax of a few channels each, and every token mixed by
// the weights. Queries, keys and values are read where they lie.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/side_by_side.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/ops/channel_attention.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, "ChannelAttention: " + message);
}

constexpr std::size_t kPadded = 16;

/// A call in numbers.
struct Problem : SideBySide {
  const float* temperature = nullptr;
  float* y = nullptr;
  std::size_t splits = 1;  ///< shares of the tokens of a head

  std::size_t step() const { return (size + kPadded - 1) / kPadded * kPadded; }
  std::size_t scores_floats() const { return (size + 2) * step(); }  ///< scores, and squares of queries and keys
  std::size_t first(std::size_t split) const { return tokens * split / splits; }
};

class ChannelAttention : public Implementation {
 public:
  ChannelAttention(const Call& call, const VectorCode& code) : attrs_(call), code_(code) {}

  void run(Invocation& call) const override {
    Problem p = read(call);
    const std::size_t units = p.batch * p.heads, threads = call.threads();
    if (units * p.tokens * p.size == 0) return;
    const double flops = 4.0 * static_cast<double>(units * p.tokens * p.size) * static_cast<double>(p.size);
    const bool small = flops < 4e5, even = threads == 1 || units % threads == 0 || units >= 4 * threads;
    constexpr std::size_t kLeastTokens = 64;
    if (!small && !even) p.splits = std::clamp<std::size_t>(p.tokens / kLeastTokens, 1, 2 * threads / units + 1);
    const std::size_t items = units * p.splits, tasks = small ? 1 : std::min(items, 4 * threads);
    const std::size_t scores = p.scores_floats(), weights = 2 * p.size * p.step();
    float* memory = reinterpret_cast<float*>(call.scratch((items * scores + tasks * weights) * sizeof(float)));
    float* rest = memory + items * scores;
    const auto gather_item = [&](std::size_t i) { gather(p, i / p.splits, i % p.splits, memory + i * scores); };
    const auto mix_item = [&](std::size_t i, std::size_t task) {
      const std::size_t unit = i / p.splits;
      mix(p, unit, i % p.splits, memory + unit * p.splits * scores, rest + task * weights);
    };
    if (p.splits == 1)
      return share(call, items, tasks, [&](std::size_t begin, std::size_t end, std::size_t task) {
        for (std::size_t i = begin; i < end; ++i) gather_item(i), mix_item(i, task);
      });
    share(call, items, tasks, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) gather_item(i);
    });
    share(call, items, tasks, [&](std::size_t begin, std::size_t end, std::size_t task) {
      for (std::size_t i = begin; i < end; ++i) mix_item(i, task);
    });
  }

 private:
  Problem read(Invocation& call) const {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    Problem p{read_side_by_side("ChannelAttention", call, attrs_.heads, attrs_.packed)};
    if (attrs_.has_temperature) {
      const View t = call.input(attrs_.temperature_index());
      if (t.dims.size() != 1 || t.dims[0] != attrs_.heads) fail("temperature is no number for each head");
      p.temperature = static_cast<const float*>(t.data);
    }
    p.y = static_cast<float*>(
        call.output(0, Dims{call.input(0).dims[0], call.input(0).dims[1], static_cast<std::int64_t>(p.width)}));
    return p;
  }

  static std::size_t place(const Problem& p, std::size_t unit, std::size_t token, std::size_t row) {
    return (unit / p.heads * p.tokens + token) * row + unit % p.heads * p.size;
  }

  /// What a share of the tokens adds to the scores of a head, and to the squares.
  void gather(const Problem& p, std::size_t unit, std::size_t split, float* to) const {
    const std::size_t first = p.first(split), count = p.first(split + 1) - first, at = place(p, unit, first, p.row);
    SmallProduct scores;
    scores.rows = scores.columns = p.size;
    scores.depth = count;
    scores.a = p.q + at, scores.a_row = 1, scores.a_step = p.row;
    scores.b = p.k + at, scores.b_step = p.row;
    scores.c = to, scores.c_row = p.step();
    code_.products.product(scores);
    if (!attrs_.normalize) return;
    code_.products.squares(p.q + at, count, p.size, p.row, to + p.size * p.step());
    code_.products.squares(p.k + at, count, p.size, p.row, to + (p.size + 1) * p.step());
  }

  float of_length(float squares) const {
    const float length = std::max(std::sqrt(squares), attrs_.epsilon);
    return 1 / (attrs_.clips ? std::min(length, std::numeric_limits<float>::max()) : length);
  }

  /// The tokens of a share from what all shares have gathered. `room`: for the weights, and for them turned.
  void mix(const Problem& p, std::size_t unit, std::size_t split, const float* gathered, float* room) const {
    const std::size_t step = p.step(), row = p.size * step;
    float *weights = room, *turned = room + row;
    const auto sum = [&](std::size_t i) {
      float all = gathered[i];
      for (std::size_t s = 1; s < p.splits; ++s) all += gathered[s * p.scores_floats() + i];
      return all;
    };
    if (attrs_.normalize)
      for (std::size_t j = 0; j < p.size; ++j) turned[j] = of_length(sum(row + step + j));
    for (std::size_t i = 0; i < p.size; ++i) {
      float* scores = weights + i * step;
      for (std::size_t j = 0; j < p.size; ++j) scores[j] = sum(i * step + j) * (attrs_.normalize ? turned[j] : 1);
      SoftmaxRow softmax;
      softmax.n = p.size;
      softmax.x = softmax.y = scores;
      softmax.scale = attrs_.scale * (p.temperature ? p.temperature[unit % p.heads] : 1);
      if (attrs_.normalize) softmax.scale *= of_length(sum(row + i));
      code_.softmax.row(softmax);
    }
    for (std::size_t j = 0; j < p.size; ++j)
      for (std::size_t i = 0; i < p.size; ++i) turned[j * step + i] = weights[i * step + j];
    const std::size_t first = p.first(split);
    SmallProduct mixed;
    mixed.rows = p.first(split + 1) - first;
    mixed.columns = mixed.depth = p.size;
    mixed.a = p.v + place(p, unit, first, p.row), mixed.a_row = p.row;
    mixed.b = turned, mixed.b_step = step;
    mixed.c = p.y + place(p, unit, first, p.width), mixed.c_row = p.width;
    code_.products.product(mixed);
  }

  ops::ChannelAttentionAttrs attrs_;
  const VectorCode& code_;
};

}  // namespace

const Kernel channel_attention = {
    .op = "ChannelAttention",
    .name = "cpu.channel_attention",
    .accepts = accepts_float32,
    .cost = cost_side_by_side,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<ChannelAttention>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
