// Convolutions over images of height 1 between views that add and drop that axis: over rows instead.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// The one axis that a Squeeze drops or an Unsqueeze adds, counted from 0.
std::optional<std::int64_t> unit_axis(const Node& view) {
  const std::optional<Ints> axes = unit_axes(view);
  return axes && axes->size() == 1 ? std::optional(axes->front()) : std::nullopt;
}

/// The convolution does nothing along the axis, which has an extent of 1 then, or it could not be dropped.
Verdict idle_along(std::optional<std::int64_t> axis, const Match& m) {
  const Dims& w = m.constant("w").dims();
  if (!axis || *axis < 2 || w.size() < 4) return no("no spatial axis is added or dropped", m.node("conv").label());
  const std::size_t spatial = w.size() - 2, i = static_cast<std::size_t>(*axis) - 2;
  const Attrs& conv = m.node("conv").attrs;
  const Ints strides = conv.ints("strides", Ints(spatial, 1)), pads = conv.ints("pads", Ints(2 * spatial, 0));
  const auto each = [&](const char* name) { return conv.ints(name, Ints(spatial, 1)).size() == spatial; };
  if (i >= spatial || pads.size() != 2 * spatial || !each("strides") || !each("dilations") || !each("kernel_shape"))
    return no("its attributes are of another rank", m.node("conv").label());
  if (w[i + 2] != 1 || strides[i] != 1 || pads[i] != 0 || pads[i + spatial] != 0)
    return no("the window covers the axis", m.node("conv").label());
  return yes();
}

Verdict idle_behind(const Match& m) { return idle_along(unit_axis(m.root()), m); }

/// The axis of extent 1 that the view in front adds, or may have added: what a Reshape is merged of tells nobody.
std::optional<std::int64_t> added_axis(const Match& m) {
  const Value& x = m.value("x");
  const Node* added = x.producer();
  if (!added || &added->graph() != &x.graph()) return {};
  if (added->is("Unsqueeze")) return unit_axis(*added);
  for (std::size_t i = 2; added->is("Reshape") && i < rank_of(&x).value_or(0); ++i)
    if (x.shape()[i] == Dim(1) && idle_along(static_cast<std::int64_t>(i), m)) return static_cast<std::int64_t>(i);
  return {};
}

/// The added axis is dropped again, at once or within a Reshape, which the Unsqueeze becomes part of.
Verdict idle_in_front(const Match& m) {
  const std::optional<std::int64_t> axis = added_axis(m);
  if (!axis) return no("nothing adds an axis", m.value("x").name());
  const Value& result = *m.root().output();
  const bool dropped = !result.is_graph_output() && std::ranges::all_of(result.uses(), [](const Use& use) {
    return use.node->is("Reshape") || use.node->is("Squeeze");
  });
  return dropped ? idle_along(axis, m) : no("the axis stays", result.name());
}

Attrs without(Attrs attrs, std::size_t i, std::size_t spatial) {
  for (const char* name : {"kernel_shape", "strides", "dilations", "pads"}) {
    if (!attrs.has(name)) continue;
    Ints values = attrs.ints(name);
    if (values.size() == 2 * spatial) values.erase(values.begin() + static_cast<std::ptrdiff_t>(i + spatial));
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
    attrs.set(name, Attr(values));
  }
  return attrs;
}

/// The convolution of `x`, which lacks the axis.
Value& over_the_others(const Match& m, std::int64_t axis, Value& x, Build& build) {
  const auto i = static_cast<std::size_t>(axis) - 2;
  const Tensor& w = m.constant("w");
  Dims dims = w.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i + 2));
  std::vector<Value*> inputs = {&x, &build.constant(w.reshaped(dims), "w")};
  if (Value* b = m["b"]) inputs.push_back(b);
  return build.op("Conv", inputs, without(m.node("conv").attrs, i, w.rank() - 2));
}

std::vector<Value*> squeezed_before(const Match& m, Build& build) {
  const std::int64_t axis = *unit_axis(m.root());
  return {&over_the_others(m, axis, with_axes(build, "Squeeze", m.value("x"), {axis}), build)};
}

std::vector<Value*> unsqueezed_behind(const Match& m, Build& build) {
  const std::int64_t axis = *added_axis(m);
  const Node& added = *m.value("x").producer();
  Value& x = added.is("Unsqueeze") ? *added.input(0) : with_axes(build, "Squeeze", m.value("x"), {axis});
  return {&with_axes(build, "Unsqueeze", over_the_others(m, axis, x, build), {axis})};
}

/// What was added in front of the Transpose is dropped behind it.
Verdict same_axis(const Match& m) {
  const std::optional<std::int64_t> added = unit_axis(m.node("added")), dropped = unit_axis(m.root());
  const Ints perm = m.node("transpose").attrs.ints("perm");
  const bool same = added && dropped && static_cast<std::size_t>(*dropped) < perm.size() &&
                    perm[static_cast<std::size_t>(*dropped)] == *added;
  return same ? yes() : no("another axis is dropped", m.root().label());
}

std::vector<Value*> transposed_alone(const Match& m, Build& build) {
  const std::int64_t added = *unit_axis(m.node("added"));
  Ints perm;
  for (const std::int64_t axis : m.node("transpose").attrs.ints("perm"))
    if (axis != added) perm.push_back(axis > added ? axis - 1 : axis);
  return {&build.op("Transpose", {&m.value("x")}, {{"perm", perm}})};
}

/// Only axes of extent 1 are repeated: the extents decide, not the order of elements.
Verdict repeats_unit_axes(const Match& m) {
  const std::optional<Ints> repeats = const_ints(m["repeats"]);
  const Value& x = m.value("x");
  if (!repeats || rank_of(&x) != repeats->size()) return no("how often is not constant", m.value("repeats").name());
  for (std::size_t i = 0; i < repeats->size(); ++i)
    if ((*repeats)[i] != 1 && !(x.shape()[i] == Dim(1))) return no("more than one element is repeated", x.name());
  return yes();
}

}  // namespace

Pass drop_unit_axes() {
  const Pattern conv = op("Conv", {any("x"), constant("w"), optional(any("b"))}, "conv");
  const Rule rule{.name = "conv-squeeze",
                  .doc = "Conv with a window of 1 along an axis of 1, Squeeze -> Conv of one axis less (tf2onnx, JAX)",
                  .from = open(op("Squeeze", {conv})),
                  .when = {idle_behind},
                  .into = squeezed_before};
  const Rule behind{
      .name = "unsqueeze-conv",
      .doc = "Unsqueeze or Reshape, Conv with a window of 1 along the new axis, Reshape or Squeeze -> Conv, Unsqueeze",
      .from = conv,
      .when = {idle_in_front},
      .into = unsqueezed_behind};
  const Pattern turned = op("Transpose", {open(op("Unsqueeze", {any("x")}, "added"))}, "transpose");
  const Rule transpose{.name = "unsqueeze-transpose-squeeze",
                       .doc = "Unsqueeze, Transpose, Squeeze of the same axis -> Transpose",
                       .from = open(op("Squeeze", {turned})),
                       .when = {same_axis},
                       .into = transposed_alone};
  const Rule tile{.name = "tile-of-unit-axes",
                  .doc = "Tile of axes of extent 1 -> Expand, which is a view",
                  .from = op("Tile", {any("x"), constant("repeats")}),
                  .when = {repeats_unit_axes},
                  .into = [](const Match& m, Build& build) -> std::vector<Value*> {
                    return {&build.op("Expand", {&m.value("x"), &m.value("repeats")})};
                  }};
  return rewrite("drop-unit-axes", "Convolutions of one axis that are written as ones of two -> Conv of one axis",
                 {rule, behind, transpose, tile});
}

}  // namespace modelflow::passes
