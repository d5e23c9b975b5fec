// InstanceNormalization by running statistics, as PyTorch writes it: the channels of all images in one axis, and
// BatchNormalization by statistics repeated for every image. Without the Reshapes it is BatchNormalization of x.
#include <algorithm>

#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// x [N, C, ...] -> [1, N * C, ...] and back; one extent that is not proven equal follows from the number of elements.
Verdict channels_join_and_return(const Match& m) {
  const Value &x = m.value("x"), &joined = *m.node("join").output(), &y = *m.root().output();
  const std::size_t rank = rank_of(&x).value_or(0);
  if (rank < 3 || rank_of(&joined) != rank || rank_of(&y) != rank) return no("the rank changes", joined.name());
  if (!x.shape()[1].known()) return no("the number of channels is unknown", x.name());
  const Shape &from = x.shape(), &to = joined.shape();
  if (to[0].number() != 1 || !(to[1] == from[0] * from[1])) return no("not images and channels alone are joined");
  for (std::size_t i = 2; i < rank; ++i)
    if (!(from[i] == to[i])) return no("not images and channels alone are joined", joined.name());
  std::size_t open = 0;
  for (std::size_t i = 0; i < rank; ++i) open += from[i] == y.shape()[i] ? 0 : 1;
  return open <= 1 ? yes() : no("the shape of x does not return", y.name());
}

/// One number per channel out of those repeated for every image; null when they are anything else.
Value* of_channels(Value& all, std::int64_t channels, Build& build) {
  if (const Node* tile = all.producer(); tile && tile->is("Tile")) {
    const Value& one = *tile->input(0);
    return rank_of(&one) == 1 && one.shape()[0].number() == channels ? tile->input(0) : nullptr;
  }
  const Tensor* constant = all.constant();
  if (!constant || constant->dtype() != DType::f32 || constant->rank() != 1) return nullptr;
  const std::span<const float> numbers = constant->as<float>();
  const auto each = static_cast<std::size_t>(channels);
  if (each == 0 || numbers.size() < each || numbers.size() % each != 0) return nullptr;
  if (!std::equal(numbers.begin() + static_cast<std::ptrdiff_t>(each), numbers.end(), numbers.begin())) return nullptr;
  return &build.constant(Tensor::of<float>({channels}, numbers.first(each)), all.name());
}

std::vector<Value*> over_channels(const Match& m, Build& build) {
  Value& x = m.value("x");
  std::vector<Value*> inputs = {&x};
  for (const char* name : {"scale", "shift", "mean", "var"}) {
    inputs.push_back(of_channels(m.value(name), x.shape()[1].value(), build));
    if (!inputs.back()) return build.refuse(no("is not repeated for every image", m.value(name).name()));
  }
  return {&build.op("BatchNormalization", std::move(inputs), m.node("norm").attrs)};
}

}  // namespace

Pass instances_apart() {
  const Pattern joined = open(op("Reshape", {any("x")}, "join"));
  const Pattern norm = op("BatchNormalization", {joined, any("scale"), any("shift"), any("mean"), any("var")}, "norm");
  return rewrite("instances-apart", "Normalizations of instances by running statistics -> BatchNormalization.",
                 {{.name = "batch-norm-of-instances",
                   .doc = "Reshape(BatchNormalization(Reshape(x))) by statistics repeated for every image",
                   .from = open(op("Reshape", {with(norm, "training_mode", 0, 0)})),
                   .when = {channels_join_and_return},
                   .into = over_channels}});
}

}  // namespace modelflow::passes
