// TalkingHeads on a GPU.
#include "backends/ops/talking_heads.h"

#include <algorithm>

#include "backends/cuda/heads.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "TalkingHeads";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

class TalkingHeads : public Implementation {
 public:
  TalkingHeads(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("wrong number of inputs");
    TalkingHeadsLaunch a = {};
    HeadsLaunch& of = a.heads;
    of = read_heads(kOp, call, attrs_.heads, attrs_.packed, target_);
    of.scale = attrs_.scale;
    const Dims square = {attrs_.heads, attrs_.heads};
    for (std::size_t i = attrs_.operands(); i < attrs_.inputs(); ++i)
      if (!std::ranges::equal(call.input(i).dims, i == attrs_.bias_index() ? Dims{attrs_.heads} : square))
        fail("what mixes the heads is of other extents than they");
    a.before = call.input(attrs_.before_index()).data;
    a.after = call.input(attrs_.after_index()).data;
    if (attrs_.has_bias) a.bias = call.input(attrs_.bias_index()).data;
    if (of.batch * of.tokens * of.size == 0) return;
    constexpr std::int64_t kOnce = 8;  // numbers that are moved at once
    a.row = (of.tokens + kOnce - 1) / kOnce * kOnce;
    a.scores = scratch_floats(call, of.batch * of.heads * of.tokens * a.row);
    a.mixed = scratch_floats(call, of.batch * of.heads * of.tokens * a.row);
    check(kOp, library_.talking_heads(a, call.stream()));
  }

 private:
  const DeviceLibrary& library_;
  Target target_;
  ops::TalkingHeadsAttrs attrs_;
};

Verdict accepts(const Call& call, const Target&) { return accepts_numbers(call); }

/// Scores are written and read, written and read three times once they are mixed, and weights written and read.
double cost(const Call& call, const Target& target) {
  const Shape& y = call.outputs.at(0).shape;
  const double tokens = y.has_rank() ? static_cast<double>(y[1].number().value_or(1)) : 1;
  const double rows = y.has_rank() ? tokens * static_cast<double>(y[0].number().value_or(1)) : 1;
  constexpr double kPasses = 10;
  const double scores = rows * tokens * static_cast<double>(ops::TalkingHeadsAttrs(call).heads);
  return heads_seconds(call, target, 3, kPasses * sizeof(float) * scores);
}

}  // namespace

const Kernel talking_heads = {
    .op = kOp,
    .name = "cuda.talking_heads",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<TalkingHeads>,
};

}  // namespace modelflow::cuda
