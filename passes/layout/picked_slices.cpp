// One element of an axis as Slice and Squeeze pick it (strided_slice of TensorFlow, x[i] of PyTorch): a Gather.
#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

struct Picked {
  std::int64_t axis, index;
};

/// Nothing where more than one axis is cut, or how far is not known.
std::optional<Picked> picked(const Node& slice, const Node& squeeze) {
  const Value* x = slice.input(0);
  const std::optional<std::size_t> rank = rank_of(x);
  const std::optional<Ints> starts = setting(slice, "starts", 1), ends = setting(slice, "ends", 2),
                            cut = setting(slice, "axes", 3, {0}), steps = setting(slice, "steps", 4, {1}),
                            dropped = setting(squeeze, "axes", 1);
  for (const auto* each : {&starts, &ends, &cut, &steps, &dropped})
    if (!*each || (*each)->size() != 1) return {};
  if (!rank || steps->front() != 1) return {};
  const auto axes = positive({cut->front(), dropped->front()}, static_cast<std::int64_t>(*rank));
  if (!axes || (*axes)[0] != (*axes)[1]) return {};
  const Dim& extent = x->shape()[static_cast<std::size_t>((*axes)[0])];
  if (!extent.known()) return {};
  const auto place = [&](std::int64_t i) { return i < 0 ? i + extent.value() : std::min(i, extent.value()); };
  const std::int64_t first = place(starts->front()), last = place(ends->front());
  if (first < 0 || last != first + 1) return {};
  return Picked{(*axes)[0], first};
}

Verdict picks_one(const Match& m) {
  return picked(m.node("slice"), m.root()) ? yes() : no("it is not one element of one axis", m.root().label());
}

std::vector<Value*> gathered(const Match& m, Build& build) {
  const auto [axis, index] = *picked(m.node("slice"), m.root());
  return {&build.op("Gather", {m.node("slice").input(0), &build.constant(Tensor::scalar(index), "index")},
                    {{"axis", axis}})};
}

}  // namespace

Pass pick_slices() {
  const Rule rule{.name = "slice-squeeze",
                  .doc = "Slice of one element of an axis, Squeeze of that axis -> Gather",
                  .from = open(op("Squeeze", {open(op("Slice", {any("x")}, "slice"))})),
                  .when = {picks_one},
                  .into = gathered};
  return rewrite("pick-slices", "One element of an axis that is cut out, whose axis is dropped then -> Gather", {rule});
}

}  // namespace modelflow::passes
