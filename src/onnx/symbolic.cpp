// The shapes of results as functions of symbols, op by op.
#include "src/onnx/symbolic.h"

#include <algorithm>
#include <set>

#include "src/onnx/derived.h"
#include "src/onnx/symbolic_broadcast.h"
#include "src/onnx/symbolic_parts.h"
#include "src/onnx/symbolic_windows.h"

namespace modelflow {
namespace {

const Shape& shape_of(const Node& node, std::size_t input) {
  static const Shape none;
  const Value* value = node.input(input);
  return value ? value->shape() : none;
}

/// Whether x is empty wherever `dim` is 0.
bool empty_with(const Shape& x, const Dim& dim) {
  return has_extent(x, dim) || (x.has_rank() && !x.elements().divided_by(dim).unknown());
}

Shape reshape(const Node& node, ShapeValues& values) {
  const Shape& x = shape_of(node, 0);
  DimList attribute;
  for (std::int64_t dim : node.attrs.ints("shape")) attribute.push_back(Dim(dim));
  const DimList* target = node.attrs.has("shape") ? &attribute : values.of(node.input(1));
  if (!target) return {};
  const bool zero_is_zero = node.attrs.integer("allowzero") != 0;
  const bool open = std::ranges::any_of(*target, [](const Dim& dim) { return dim.number() == -1; });
  std::vector<Dim> dims;
  std::optional<std::size_t> wild;
  std::set<std::size_t> copied;  // they cancel, also when they are unknown
  Dim rest = 1, total = 1;
  for (std::size_t i = 0; i < target->size(); ++i) {
    Dim dim = (*target)[i];
    bool copy = dim.known() && dim.value() == 0 && !zero_is_zero;
    if (copy) {
      copied.insert(i);
      dim = x.has_rank() && i < x.rank() ? x[i] : Dim();
    }
    bool is_wild = dim.known() && dim.value() < 0;
    if (is_wild) wild = i;
    // A computed extent that comes out as 0 is read as "the same as in x", which a -1 makes fit. If x is empty then, so
    // is the result, and all that may differ is the extents that it has besides. A computed -1 is a wild one.
    const bool told = zero_is_zero || !open || dim.known() || empty_with(x, dim);
    if (!told || may_be_wild(dim, x)) dim = {};
    if (!is_wild && !copy) rest = rest * dim;
    dims.push_back(is_wild ? Dim() : dim);
  }
  if (!wild || !x.has_rank()) return dims;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (!copied.count(i)) total = total * x[i];
  }
  dims[*wild] = total.divided_by(rest);
  return dims;
}

Shape flatten(const Node& node, ShapeValues&) {
  const Shape& x = shape_of(node, 0);
  if (!x.has_rank()) return {};
  std::int64_t axis = node.attrs.integer("axis", 1);
  if (axis < 0) axis += static_cast<std::int64_t>(x.rank());
  Dim first = 1, second = 1;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    Dim& part = static_cast<std::int64_t>(i) < axis ? first : second;
    part = part * x[i];
  }
  return std::vector<Dim>{first, second};
}

Shape concat(const Node& node, ShapeValues&) {
  const Shape& x = shape_of(node, 0);
  auto axis = x.has_rank() ? axis_in(node.attrs.integer("axis", 1), x.rank()) : std::nullopt;
  if (!axis) return {};
  std::vector<Dim> dims = x.dims();
  for (std::size_t i = 1; i < node.inputs().size(); ++i) {
    const Shape& part = shape_of(node, i);
    if (!part.has_rank() || part.rank() != dims.size()) return {};
    for (std::size_t j = 0; j < dims.size(); ++j) {
      dims[j] = j == *axis ? dims[j] + part[j] : plainer(dims[j], part[j]);
    }
  }
  return dims;
}

Shape tile(const Node& node, ShapeValues& values) {
  const Shape& x = shape_of(node, 0);
  const DimList* repeats = values.of(node.input(1));
  if (!x.has_rank() || !repeats || repeats->size() != x.rank()) return {};
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < x.rank(); ++i) dims.push_back(x[i] * (*repeats)[i]);
  return dims;
}

Shape pad(const Node& node, ShapeValues& values) {
  const Shape& x = shape_of(node, 0);
  DimList pads;
  if (node.attrs.has("pads")) {
    for (std::int64_t number : node.attrs.ints("pads")) pads.push_back(Dim(number));
  } else if (const DimList* known = values.of(node.input(1))) {
    pads = *known;
  }
  const auto axes = node.input(3) ? values.numbers(node.input(3)) : std::nullopt;
  if (!x.has_rank() || (node.input(3) && !axes) || pads.size() != 2 * (axes ? axes->size() : x.rank())) return {};
  std::vector<Dim> dims = x.dims();
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    const auto axis = axis_in(axes ? (*axes)[i] : static_cast<std::int64_t>(i), x.rank());
    if (!axis) return {};
    dims[*axis] = dims[*axis] + pads[i] + pads[i + pads.size() / 2];
  }
  return dims;
}

Shape filled(const Node& node, ShapeValues& values) {
  const DimList* dims = values.of(node.input(0));
  return dims ? Shape(*dims) : Shape();
}

Shape depth_to_space(const Node& node, ShapeValues&) {
  const Shape& x = shape_of(node, 0);
  std::int64_t block = node.attrs.integer("blocksize", 1);
  if (!x.has_rank() || x.rank() != 4 || block < 1) return {};
  return std::vector<Dim>{x[0], x[1].divided_by(Dim(block) * Dim(block)), x[2] * Dim(block), x[3] * Dim(block)};
}

Shape space_to_depth(const Node& node, ShapeValues&) {
  const Shape& x = shape_of(node, 0);
  std::int64_t block = node.attrs.integer("blocksize", 1);
  if (!x.has_rank() || x.rank() != 4 || block < 1) return {};
  return std::vector<Dim>{x[0], x[1] * Dim(block) * Dim(block), x[2].divided_by(Dim(block)),
                          x[3].divided_by(Dim(block))};
}

struct ShapeRule {
  std::string_view op;
  Shape (*shape)(const Node&, ShapeValues&);
};

constexpr ShapeRule kRules[] = {
    {"Reshape", reshape},
    {"Flatten", flatten},
    {"Concat", concat},
    {"Slice", slice_shape},
    {"Expand", expand_shape},
    {"Tile", tile},
    {"Pad", pad},
    {"ConstantOfShape", filled},
    {"Range", range_shape},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"Resize", resize_shape},
    {"Upsample", resize_shape},
    {"Conv", [](const Node& node, ShapeValues&) { return conv_shape(node); }},
    {"ConvTranspose", [](const Node& node, ShapeValues&) { return conv_transpose_shape(node); }},
    {"MaxPool", [](const Node& node, ShapeValues&) { return pool_shape(node); }},
    {"AveragePool", [](const Node& node, ShapeValues&) { return pool_shape(node); }},
    {"LpPool", [](const Node& node, ShapeValues&) { return pool_shape(node); }},
};

}  // namespace

bool disputed_shapes(const Node& node, ShapeValues& values) {
  if (!node.domain().empty()) return false;
  return node.op() == "Reshape" || disputed_window(node) || disputed_slice(node, values);
}

std::vector<Shape> symbolic_shapes(const Node& node, ShapeValues& values) {
  std::vector<Shape> shapes(node.outputs().size());
  if (!node.domain().empty() || shapes.empty()) return shapes;
  if (node.op() == "Split") return split_shapes(node, values);
  for (const ShapeRule& rule : kRules) {
    if (rule.op == node.op()) shapes[0] = rule.shape(node, values);
  }
  if (!shapes[0].has_rank()) shapes[0] = elementwise_shape(node);
  return shapes;
}

}  // namespace modelflow
