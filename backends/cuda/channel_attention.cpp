// ChannelAttention on a GPU.
#include "backends/ops/channel_attention.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/heads.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "ChannelAttention";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

/// Tokens of a share: enough shares for two blocks on each multiprocessor, none of a few tokens alone.
std::int64_t tokens_of_part(const HeadsLaunch& of, const Target& target) {
  constexpr std::int64_t kSide = 64, kLeast = 64, kMostParts = 32;
  const std::int64_t tiles = (of.size + kSide - 1) / kSide, blocks = of.batch * of.heads * tiles * tiles;
  const std::int64_t parts = std::clamp<std::int64_t>(2 * target.cores / blocks, 1, kMostParts);
  return ((of.tokens + parts - 1) / parts + kLeast - 1) / kLeast * kLeast;
}

class ChannelAttention : public Implementation {
 public:
  ChannelAttention(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("wrong number of inputs");
    ChannelAttentionLaunch a = {};
    HeadsLaunch& of = a.heads;
    of = read_heads(kOp, call, attrs_.heads, attrs_.packed, target_);
    of.scale = attrs_.scale;
    if (attrs_.has_temperature) {
      const View temperature = call.input(attrs_.temperature_index());
      if (!std::ranges::equal(temperature.dims, Dims{attrs_.heads})) fail("temperature is no number for each head");
      a.temperature = temperature.data;
    }
    const std::int64_t units = of.batch * of.heads;
    if (units * of.tokens * of.size == 0) return;
    a.normalize = attrs_.normalize;
    a.shortest = attrs_.epsilon;
    a.longest = attrs_.clips ? std::numeric_limits<float>::max() : std::numeric_limits<float>::infinity();
    a.part = tokens_of_part(of, target_);
    a.parts = (of.tokens + a.part - 1) / a.part;
    constexpr std::int64_t kOnce = 8;  // numbers that are moved at once
    a.row = (of.size + kOnce - 1) / kOnce * kOnce;
    a.scores = scratch_floats(call, units * a.parts * of.size * of.size);
    if (a.normalize) a.squares = scratch_floats(call, 2 * units * a.parts * of.size);
    a.weights = scratch_floats(call, units * of.size * a.row);
    check(kOp, library_.channel_attention(a, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  Target target_;
  ops::ChannelAttentionAttrs attrs_;
};

Verdict accepts(const Call& call, const Target&) { return accepts_numbers(call); }

/// Scores are far fewer than operands; for their lengths queries and keys are read again.
double cost(const Call& call, const Target& target) {
  const bool normalize = ops::ChannelAttentionAttrs(call).normalize;
  const double again = normalize ? 2 * element_bytes(call) * call.outputs.at(0).shape.known_elements() : 0;
  return heads_seconds(call, target, normalize ? 4 : 3, again);
}

}  // namespace

const Kernel channel_attention = {
    .op = kOp,
    .name = "cuda.channel_attention",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<ChannelAttention>,
};

}  // namespace modelflow::cuda
