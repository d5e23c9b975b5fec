// What the spelled-out normalizations have in common.
#include <algorithm>
#include <numeric>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/norms.h"

namespace modelflow::passes {

using namespace pattern;

Pattern mean(Pattern x) {
  // A mean over all axes but the first two is also written as a pooling.
  return where(open(op_any({"ReduceMean", "GlobalAveragePool"}, {std::move(x)})), [](const Node& node) {
    return node.attrs.integer("keepdims", 1) != 0 ? yes() : no("the axes of the mean do not stay");
  });
}

Spreads spreads(const Pattern& deviation) {
  const Pattern shifted = mean(either({pow(deviation, 2), deviation * deviation})) + constant("epsilon");
  const Pattern root = either({op("Sqrt", {shifted}), pow(shifted, 0.5)});
  return {root, either({op("Reciprocal", {root}), 1.0 / root, pow(shifted, -0.5)})};
}

Pattern tensorflow_norm(const Pattern& x) {
  const Pattern beta = any("beta"), gain = spreads(x - mean(x)).inverse * any("gamma");
  return x * gain + either({beta - mean(x) * gain, op("Neg", {mean(x)}) * gain + beta});
}

namespace {

std::optional<Ints> axes_of(const Node& mean) {
  const std::size_t rank = rank_of(mean.input(0)).value_or(0);
  if (mean.is("GlobalAveragePool")) {
    if (rank < 3) return {};
    Ints axes(rank - 2);
    std::iota(axes.begin(), axes.end(), 2);
    return axes;
  }
  std::optional<Ints> axes = setting(mean, "axes", 1);
  if (axes) axes = positive(*axes, static_cast<std::int64_t>(rank));
  if (!axes || axes->empty()) return {};
  std::sort(axes->begin(), axes->end());
  if (std::adjacent_find(axes->begin(), axes->end()) != axes->end()) return {};  // named twice: it means nothing
  return axes;
}

}  // namespace

std::optional<Ints> mean_axes(const Match& m) {
  std::optional<Ints> common;
  for (const Node* node : m.nodes()) {
    if (!node->is("ReduceMean") && !node->is("GlobalAveragePool")) continue;
    const std::optional<Ints> axes = axes_of(*node);
    if (!axes || (common && *common != *axes)) return {};
    common = axes;
  }
  return common;
}

Verdict small_number(const Match& m) {
  const Value& epsilon = m.value("epsilon");
  const std::optional<double> number = number_beside(&epsilon, rank_of(&m.value("x")).value_or(0));
  if (!number) return no("epsilon is no single number", epsilon.name());
  return *number >= 0 ? yes() : no("epsilon is negative", epsilon.name());
}

}  // namespace modelflow::passes
