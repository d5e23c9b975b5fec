#include "src/onnx/symbolic.h"

#include <limits>
#include <set>

#include "src/onnx/floor.h"
#include "src/onnx/symbolic_windows.h"

namespace modelflow {
namespace {

const Shape& shape_of(const Node& node, std::size_t input) {
  static const Shape none;
  const Value* value = node.input(input);
  return value ? value->shape() : none;
}

std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  auto size = static_cast<std::int64_t>(rank);
  if (axis < 0) axis += size;
  if (axis < 0 || axis >= size) return {};
  return static_cast<std::size_t>(axis);
}

Shape reshape(const Node& node, ShapeValues& values) {
  const Shape& x = shape_of(node, 0);
  DimList attribute;
  for (std::int64_t dim : node.attrs.ints("shape")) attribute.push_back(Dim(dim));
  const DimList* target = node.attrs.has("shape") ? &attribute : values.of(node.input(1));
  if (!target) return {};
  bool zero_is_zero = node.attrs.integer("allowzero") != 0;
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
  auto axis = x.has_rank() ? axis_of(node.attrs.integer("axis", 1), x.rank()) : std::nullopt;
  if (!axis) return {};
  std::vector<Dim> dims = x.dims();
  for (std::size_t i = 1; i < node.inputs().size(); ++i) {
    const Shape& part = shape_of(node, i);
    if (!part.has_rank() || part.rank() != dims.size()) return {};
    for (std::size_t j = 0; j < dims.size(); ++j) {
      if (j == *axis) {
        dims[j] = dims[j] + part[j];
      } else if (dims[j].unknown() || (!dims[j].known() && part[j].known())) {
        dims[j] = part[j];
      }
    }
  }
  return dims;
}

constexpr std::int64_t kFarEnd = std::numeric_limits<std::int32_t>::max();

// A bound that is a symbol is taken to lie within the axis: a model that slices beyond it breaks at the next operator.
Dim sliced(const Dim& extent, const Dim& start, const Dim& end) {
  auto from_back = [](const Dim& index) { return index.known() && index.value() < 0; };
  Dim first = from_back(start) ? extent + start : start;
  Dim last = from_back(end) ? extent + end : end;
  if (end.known() && end.value() >= kFarEnd) last = extent;
  if (extent.known() && last.known() && last.value() > extent.value()) last = extent;
  if (!extent.known() && last.known() && end.known() && end.value() > 0 && end.value() < kFarEnd) return {};
  Dim length = last - first;
  if (auto number = length.number(); number && *number < 0) return 0;
  return length;
}

Shape slice(const Node& node, ShapeValues& values) {
  const Shape& x = shape_of(node, 0);
  if (!x.has_rank()) return {};
  auto list = [&](const char* name, std::size_t input) -> std::optional<DimList> {
    if (node.attrs.has("starts")) {
      if (!node.attrs.has(name)) return {};
      DimList dims;
      for (std::int64_t number : node.attrs.ints(name)) dims.push_back(Dim(number));
      return dims;
    }
    const DimList* known = values.of(node.input(input));
    return known ? std::optional(*known) : std::nullopt;
  };
  auto starts = list("starts", 1), ends = list("ends", 2), axes = list("axes", 3);
  if (!starts || !ends || starts->size() != ends->size() || (node.input(3) && !axes)) return {};
  std::optional<DimList> steps = node.input(4) ? list("steps", 4) : DimList(starts->size(), Dim(1));
  if (!steps || steps->size() != starts->size()) return {};
  std::vector<Dim> dims = x.dims();
  for (std::size_t i = 0; i < starts->size(); ++i) {
    auto number = axes && i < axes->size() ? (*axes)[i].number() : std::optional<std::int64_t>(i);
    auto axis = number ? axis_of(*number, dims.size()) : std::nullopt;
    if (!axis) return {};
    Dim length = sliced(x[*axis], (*starts)[i], (*ends)[i]);
    auto step = (*steps)[i].number();
    dims[*axis] = step && *step > 0 ? ceil_div(length, *step) : Dim();
  }
  return dims;
}

Shape expand(const Node& node, ShapeValues& values) {
  const Shape& x = shape_of(node, 0);
  const DimList* target = values.of(node.input(1));
  const Shape length = shape_of(node, 1);
  if (!x.has_rank() ||
      (!target && (!length.has_rank() || length.rank() != 1 || !length[0].known() || length[0].value() > 16)))
    return {};
  DimList open(target ? 0 : static_cast<std::size_t>(length[0].value()));  // the rank alone
  if (!target) target = &open;
  std::size_t rank = std::max(x.rank(), target->size());
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < rank; ++i) {
    Dim a = i + x.rank() >= rank ? x[i + x.rank() - rank] : Dim(1);
    Dim b = i + target->size() >= rank ? (*target)[i + target->size() - rank] : Dim(1);
    bool one_a = a.known() && a.value() == 1, one_b = b.known() && b.value() == 1;
    if (one_a || a == b) {
      dims.push_back(b);
    } else if (one_b || (a.known() && a.value() > 1)) {
      dims.push_back(a);
    } else {
      dims.push_back(b.known() && b.value() > 1 ? b : Dim());
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
  if (!x.has_rank() || pads.size() != 2 * x.rank() || node.input(3)) return {};
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < x.rank(); ++i) dims.push_back(x[i] + pads[i] + pads[i + x.rank()]);
  return dims;
}

Shape filled(const Node& node, ShapeValues& values) {
  const DimList* dims = values.of(node.input(0));
  return dims ? Shape(*dims) : Shape();
}

Shape range(const Node& node, ShapeValues& values) {
  const DimList *start = values.of(node.input(0)), *limit = values.of(node.input(1)), *step = values.of(node.input(2));
  if (!start || !limit || !step || start->size() != 1 || limit->size() != 1 || step->size() != 1) return {};
  auto stride = (*step)[0].number();
  if (!stride || *stride <= 0) return {};
  Dim length = ceil_div((*limit)[0] - (*start)[0], *stride);
  if (auto number = length.number(); number && *number < 0) length = 0;
  return std::vector<Dim>{length};
}

Shape depth_to_space(const Node& node, ShapeValues&) {
  const Shape& x = shape_of(node, 0);
  std::int64_t block = node.attrs.integer("blocksize", 1);
  if (!x.has_rank() || x.rank() != 4 || block < 1) return {};
  return std::vector<Dim>{x[0], x[1].divided_by(Dim(block * block)), x[2] * Dim(block), x[3] * Dim(block)};
}

Shape space_to_depth(const Node& node, ShapeValues&) {
  const Shape& x = shape_of(node, 0);
  std::int64_t block = node.attrs.integer("blocksize", 1);
  if (!x.has_rank() || x.rank() != 4 || block < 1) return {};
  return std::vector<Dim>{x[0], x[1] * Dim(block * block), x[2].divided_by(Dim(block)), x[3].divided_by(Dim(block))};
}

std::vector<Shape> split(const Node& node, ShapeValues& values) {
  const Shape& x = shape_of(node, 0);
  std::size_t count = node.outputs().size();
  auto axis = x.has_rank() ? axis_of(node.attrs.integer("axis", 0), x.rank()) : std::nullopt;
  if (!axis) return std::vector<Shape>(count);
  DimList sizes;
  for (std::int64_t number : node.attrs.ints("split")) sizes.push_back(Dim(number));
  if (const DimList* known = values.of(node.input(1))) sizes = *known;
  if (sizes.empty() && !node.input(1)) sizes.assign(count, x[*axis].divided_by(Dim(static_cast<int>(count))));
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Dim> dims = x.dims();
    dims[*axis] = i < sizes.size() ? sizes[i] : Dim();
    shapes.push_back(std::move(dims));
  }
  return shapes;
}

struct ShapeRule {
  std::string_view op;
  Shape (*shape)(const Node&, ShapeValues&);
};

constexpr ShapeRule kRules[] = {
    {"Reshape", reshape},
    {"Flatten", flatten},
    {"Concat", concat},
    {"Slice", slice},
    {"Expand", expand},
    {"Tile", tile},
    {"Pad", pad},
    {"ConstantOfShape", filled},
    {"Range", range},
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

std::vector<Shape> symbolic_shapes(const Node& node, ShapeValues& values) {
  std::vector<Shape> shapes(node.outputs().size());
  if (!node.domain().empty() || shapes.empty()) return shapes;
  if (node.op() == "Split") return split(node, values);
  for (const ShapeRule& rule : kRules) {
    if (rule.op == node.op()) shapes[0] = rule.shape(node, values);
  }
  return shapes;
}

}  // namespace modelflow
