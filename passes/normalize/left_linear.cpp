// A constant that multiplies from the left: the filters over the bins of a spectrogram [batch, bins, frames]. It mixes
// channels, as a convolution with a window of one does, which the ones around it can share a layout with.
#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/linear.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// A Slice that leaves something of each axis: a convolution of nothing is refused where a product is not.
bool leaves_something(const Node& slice) {
  const std::size_t rank = rank_of(slice.output()).value_or(0);
  const std::optional<Ints> given = setting(slice, "axes", 3);
  const std::optional<Ints> axes = given ? positive(*given, static_cast<std::int64_t>(rank)) : std::nullopt;
  return axes && std::ranges::all_of(*axes, [&](std::int64_t axis) {
           return slice.output()->shape()[static_cast<std::size_t>(axis)].number().value_or(0) > 0;
         });
}

/// Computed from a convolution by nothing but elementwise ops and views, over a few nodes.
bool made_of_convolutions(const Value& value, int most) {
  const Node* node = value.producer();
  if (!node || most == 0) return false;
  if (node->is("Conv")) return true;
  if (node->is("Slice") && !leaves_something(*node)) return false;
  static constexpr const char* kViews[] = {"Transpose", "Slice", "Squeeze", "Unsqueeze"};
  const bool view = std::any_of(std::begin(kViews), std::end(kViews), [&](const char* op) { return node->is(op); });
  if (!view && !elementwise(*node)) return false;
  for (std::size_t i = 0; i < (view ? 1 : node->inputs().size()); ++i)
    if (node->input(i) && made_of_convolutions(*node->input(i), most - 1)) return true;
  return false;
}

Verdict mixes_channels(const Match& m) {
  const Value& x = m.value("x");
  const Tensor& w = m.constant("w");
  if (w.rank() != 2 || w.dtype() != DType::f32) return no("is no matrix in float32", m.value("w").name());
  const std::size_t rank = rank_of(&x).value_or(0);
  if (rank != 2 && rank != 3) return no("is of another rank", x.name());
  return made_of_convolutions(x, 12) ? yes() : no("is made of no convolution", x.name());
}

std::vector<Value*> as_convolution(const Match& m, Build& build) {
  const Tensor& w = m.constant("w");
  if (build.opset() < 13) return build.refuse(no("the opset is below 13"));
  Value* x = &m.value("x");
  const bool batch = rank_of(x) == 3;
  if (!batch) x = &build.op("Unsqueeze", {x, &build.constant(tensor_of({0}), "axes")});
  Value& weights = build.constant(w.reshaped({w.dims()[0], w.dims()[1], 1}), m.value("w").name());
  Value& y = build.op("Conv", {x, &weights}, {{"kernel_shape", Ints{1}}});
  return {batch ? &y : &build.op("Squeeze", {&y, &build.constant(tensor_of({0}), "axes")})};
}

}  // namespace

std::vector<Rule> left_linear_rules() {
  return {{.name = "filters-from-the-left",
           .doc = "MatMul(w, x) with a constant w and x made of convolutions -> Conv(x, w) with a window of 1",
           .from = op("MatMul", {constant("w"), any("x")}),
           .when = {mixes_channels},
           .into = as_convolution}};
}

}  // namespace modelflow::passes
