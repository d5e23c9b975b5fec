// Operators in the form that they have in a newer opset: windows and images, softmax, normalization of groups.
#include "src/compose/raise_forms.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "src/compose/numbers.h"

namespace modelflow {
namespace {

Tensor scalar(DType dtype, float value) {
  const Number number = value;
  return numbers(dtype, {}, {&number, 1});
}

Node& in_front(Node& node, const char* op, std::vector<Value*> inputs, Attrs attrs = {}) {
  return node.graph().add(op, std::move(inputs), {.before = &node, .attrs = std::move(attrs)});
}

Tensor tensor_of(const Ints& values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values));
}

Value& constant(Node& node, const Ints& values) { return node.graph().add_constant(tensor_of(values)); }

/// Reshape takes an extent of 0 from the rows that Flatten made: the right one is there for the first axis at most.
bool keeps_empty(const Shape& x, std::int64_t axis) {
  if (!x.has_rank()) return false;
  const auto is_full = [](const Dim& dim) { return dim.known() && dim.value() > 0; };
  return std::all_of(x.dims().begin() + (axis > 0 ? 1 : 0), x.dims().end(), is_full);
}

/// What a bound before opset 11 is where the node says none.
constexpr float kLargest = std::numeric_limits<float>::max();

/// What is true of all scales: they are known, and none makes smaller, or larger.
struct Scales {
  bool none_below = true, none_above = true;
};

std::optional<Scales> scales_of(const Node& resize) {
  const Tensor* scales = resize.input(1) ? resize.input(1)->constant() : nullptr;
  if (!scales) return {};
  const std::vector<double> all = scales->to_doubles();
  return Scales{std::ranges::none_of(all, [](double s) { return s < 1; }),
                std::ranges::none_of(all, [](double s) { return s > 1; })};
}

}  // namespace

void constant_input(Node& node, std::size_t index, Tensor tensor, const char* stem) {
  node.graph().set_input(node, index, &node.graph().add_constant(std::move(tensor), stem));
}

void ints_to_input(Node& node, const char* name, std::size_t index) {
  if (!node.attrs.has(name)) return;
  constant_input(node, index, tensor_of(node.attrs.ints(name)), name);
  node.attrs.erase(name);
}

Verdict upsample_scales(Node& node) {
  const Floats scales = node.attrs.floats("scales");
  const Dims dims = {static_cast<std::int64_t>(scales.size())};
  constant_input(node, 1, Tensor::of<float>(dims, scales), "scales");
  node.attrs.erase("scales");
  return yes();
}

Verdict upsample_to_resize(Node& node) {
  node.graph().set_op(node, "Resize");
  return yes();
}

Verdict clip_bounds(Node& node) {
  const DType dtype = node.input(0) ? node.input(0)->dtype() : DType::undefined;
  if (!is_float(dtype)) return no("the type of its data is not known");
  // Bounds that nobody gave cut infinity all the same, but where the type ends before them.
  const bool ends_before = dtype == DType::f16;
  const float low = node.attrs.number("min", -kLargest), high = node.attrs.number("max", kLargest);
  if (!ends_before || low > -kLargest) constant_input(node, 1, scalar(dtype, low), "min");
  if (!ends_before || high < kLargest) constant_input(node, 2, scalar(dtype, high), "max");
  node.attrs.erase("min");
  node.attrs.erase("max");
  return yes();
}

Verdict pad_inputs(Node& node) {
  const DType dtype = node.input(0) ? node.input(0)->dtype() : DType::undefined;
  const float value = node.attrs.number("value", 0);
  if (value != 0 && !is_float(dtype)) return no("the type of its data is not known");
  if (value != 0) constant_input(node, 2, scalar(dtype, value), "value");
  node.attrs.erase("value");
  ints_to_input(node, "pads", 1);
  return yes();
}

Verdict resize_coordinates(Node& node) {
  const bool nearest = node.attrs.text("mode", "nearest") == "nearest";
  const std::optional<Scales> scales = scales_of(node);
  if (nearest && !scales) return no("its scales are computed: newer forms say how pixels are picked");
  if (nearest && !scales->none_below && !scales->none_above) return no("it enlarges one axis and reduces another");
  Value* by = node.input(1);
  constant_input(node, 1, Tensor::of<float>({0}, {}), "roi");
  node.graph().set_input(node, 2, by);
  node.attrs.set("coordinate_transformation_mode", "asymmetric");
  // ONNX Runtime takes the pixel above where an image becomes smaller; the text says nothing.
  if (nearest) node.attrs.set("nearest_mode", scales->none_below ? "floor" : "ceil");
  return yes();
}

Verdict one_axis(Node& node) {
  const Shape& x = node.input(0)->shape();
  std::int64_t axis = node.attrs.integer("axis", 1);
  if (axis < 0 && !x.has_rank()) return no("the rank of its data is not known");
  if (axis < 0) axis += static_cast<std::int64_t>(x.rank());
  const auto is_one = [](const Dim& dim) { return dim == Dim(1); };
  if (x.has_rank() && axis < static_cast<std::int64_t>(x.rank()) &&
      std::all_of(x.dims().begin() + axis + 1, x.dims().end(), is_one)) {
    node.attrs.set("axis", axis);
    return yes();
  }
  if (!keeps_empty(x, axis)) return no("over several axes, of data that may be empty");
  Graph& graph = node.graph();
  Value& shape = *in_front(node, "Shape", {node.input(0)}).output();
  Value& rows = *in_front(node, "Flatten", {node.input(0)}, {{"axis", Attr(axis)}}).output();
  Value& result = *in_front(node, node.op().c_str(), {&rows}, {{"axis", Attr(std::int64_t{-1})}}).output();
  graph.set_op(node, "Reshape");
  node.attrs.erase("axis");
  graph.resize_inputs(node, 2);
  graph.set_input(node, 0, &result);
  graph.set_input(node, 1, &shape);
  return yes();
}

Verdict scales_per_channel(Node& node) {
  const Shape& x = node.input(0)->shape();
  if (!is_float(node.input(0)->dtype())) return no("the type of its data is not known");
  const std::int64_t groups = node.attrs.integer("num_groups");
  if (!x.has_rank() || x.rank() < 2 || !x[1].known()) return no("its number of channels is not known");
  if (groups <= 0 || x[1].value() % groups != 0) return no("its channels are no multiple of its groups");
  const std::int64_t channels = x[1].value();
  // It computed in the type of its data, and takes float32 where nothing is said.
  node.attrs.set("stash_type", static_cast<std::int64_t>(node.input(0)->dtype()));
  for (const std::size_t i : {1, 2}) {
    Value& column = *in_front(node, "Reshape", {node.input(i), &constant(node, {groups, 1})}).output();
    Value& table = *in_front(node, "Expand", {&column, &constant(node, {groups, channels / groups})}).output();
    node.graph().set_input(node, i, in_front(node, "Reshape", {&table, &constant(node, {channels})}).output());
  }
  return yes();
}

}  // namespace modelflow
