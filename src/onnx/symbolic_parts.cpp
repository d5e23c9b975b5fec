// How long the parts of an axis are: Slice, Split, Range. Bounds are cut to the axis, so lengths are the smaller and
// the larger of dims; unknown where that depends on more than signs that are proven.
#include "src/onnx/symbolic_parts.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "src/onnx/derived.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

/// A length that no axis has. ONNX Runtime itself reads INT32_MAX as "to the end".
constexpr std::int64_t kBeyond = std::int64_t{1} << 40;
bool at_the_end(const Dim& index) { return index.known() && (index.value() >= kBeyond || index.value() == INT32_MAX); }
bool before_the_start(const Dim& index) { return index.known() && index.value() <= -INT32_MAX; }

/// A bound before it is cut to the axis.
struct Bound {
  Dim at;               ///< unknown where it may count from the front or from the back
  bool inside = false;  ///< it never lies beyond the end
};

Bound bound(const Dim& index, const Dim& extent) {
  if (at_the_end(index)) return {extent, true};
  if (before_the_start(index)) return {0, true};
  if (index.known() && index.value() < 0) return {extent + index, true};
  const Dim missing = extent - index;
  if (never_negative(index)) return {index, never_negative(missing)};
  // extent - 1 and extent - 2: below 0 they count from the back, and are still not inside.
  return missing.number() == 1 || missing.number() == 2 ? Bound{index, true} : Bound{};
}

Dim clamped(const Bound& bound, const Dim& extent) {
  const Dim at = at_least_zero(bound.at);
  return bound.inside ? at : smaller(at, extent);
}

/// How many steps lie in `way`, none where it is negative. Rounding first leaves less to tell apart.
Dim steps_in(const Dim& way, std::int64_t step) {
  const Dim steps = ceil_div(way, step);
  return steps.unknown() ? ceil_div(at_least_zero(way), step) : at_least_zero(steps);
}

/// The length of x[start:end:step] forwards.
Dim forwards(const Dim& extent, const Dim& start, const Dim& end, std::int64_t step) {
  const Bound first = bound(start, extent), last = bound(end, extent);
  const Dim way = last.at - first.at;
  if (never_negative(way)) return ceil_div(clamped(last, extent) - clamped(first, extent), step);
  // Cut at the other side, it would be empty just as well.
  if (never_negative(first.at) && last.inside) return steps_in(way, step);
  return steps_in(clamped(last, extent) - clamped(first, extent), step);
}

/// The length of x[start:end:-step], both bounds being numbers. Only the last element is a start from the back.
Dim backwards(const Dim& extent, const Dim& start, const Dim& end, std::int64_t step) {
  if (!start.known() || !end.known() || end.value() == INT32_MAX || end.value() == INT64_MAX) return {};
  const bool from_last = start.value() == -1 || at_the_end(start);
  Dim first = from_last ? extent - Dim(1) : smaller(start, extent - Dim(1));
  if (start.value() < -1) {
    if (!extent.known()) return {};
    first = extent.value() == 0 ? Dim(-1) : at_least_zero(extent + start);
  }
  Dim last = before_the_start(end) ? Dim(-1) : smaller(end, extent);
  if (end.value() < 0 && !before_the_start(end)) last = at_least_zero(extent + end + Dim(1)) - Dim(1);
  return steps_in(first - last, step);
}

Dim length_of(const Dim& extent, const Dim& start, const Dim& end, const Dim& step) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 62;  // its sums do not overflow
  if (extent.unknown() || start.unknown() || end.unknown() || !step.known() || step.value() == 0) return {};
  if (step.value() > 0) return forwards(extent, start, end, std::min(step.value(), kLongest));
  return backwards(extent, start, end, -std::max(step.value(), -kLongest));
}

std::optional<DimList> bounds(const Node& node, ShapeValues& values, const char* name, std::size_t input) {
  if (node.attrs.has("starts")) {
    if (!node.attrs.has(name)) return {};
    DimList dims;
    for (const std::int64_t number : node.attrs.ints(name)) dims.push_back(Dim(number));
    return dims;
  }
  const DimList* known = values.of(node.input(input));
  return known ? std::optional(*known) : std::nullopt;
}

}  // namespace

std::optional<std::size_t> axis_in(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < 0) axis += size;
  if (axis < 0 || axis >= size) return {};
  return static_cast<std::size_t>(axis);
}

Shape slice_shape(const Node& node, ShapeValues& values) {
  const Value* x = node.input(0);
  if (!x || !x->shape().has_rank()) return {};
  const auto starts = bounds(node, values, "starts", 1), ends = bounds(node, values, "ends", 2),
             axes = bounds(node, values, "axes", 3);
  if (!starts || !ends || starts->size() != ends->size() || (node.input(3) && !axes)) return {};
  const auto steps = node.input(4) ? bounds(node, values, "steps", 4) : DimList(starts->size(), Dim(1));
  if (!steps || steps->size() != starts->size() || (axes && axes->size() != starts->size())) return {};
  std::vector<Dim> dims = x->shape().dims();
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const auto number = axes ? (*axes)[i].number() : std::optional(static_cast<std::int64_t>(i));
    const auto axis = number ? axis_in(*number, dims.size()) : std::nullopt;
    if (!axis) return {};
    dims[*axis] = length_of(x->shape()[*axis], (*starts)[i], (*ends)[i], (*steps)[i]);
  }
  return dims;
}

bool disputed_slice(const Node& node, ShapeValues& values) {
  if (!node.is("Slice") || !node.input(4)) return false;
  const auto ends = bounds(node, values, "ends", 2), steps = bounds(node, values, "steps", 4);
  if (!ends || !steps || ends->size() != steps->size()) return true;
  for (std::size_t i = 0; i < ends->size(); ++i) {
    const auto step = (*steps)[i].number();
    if ((!step || *step < 0) && at_the_end((*ends)[i])) return true;
  }
  return false;
}

Shape range_shape(const Node& node, ShapeValues& values) {
  const DimList *start = values.of(node.input(0)), *limit = values.of(node.input(1)), *step = values.of(node.input(2));
  if (!start || !limit || !step || start->size() != 1 || limit->size() != 1 || step->size() != 1) return {};
  const auto stride = (*step)[0].number();
  if (!stride || *stride == 0 || *stride == INT64_MIN) return {};
  const Dim way = *stride > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  return std::vector<Dim>{steps_in(way, std::abs(*stride))};
}

std::vector<Shape> split_shapes(const Node& node, ShapeValues& values) {
  const Value* x = node.input(0);
  const auto count = static_cast<std::int64_t>(node.outputs().size());
  const auto axis =
      x && x->shape().has_rank() ? axis_in(node.attrs.integer("axis", 0), x->shape().rank()) : std::nullopt;
  if (!axis || count == 0) return std::vector<Shape>(node.outputs().size());
  const Dim& extent = x->shape()[*axis];
  DimList sizes;
  for (const std::int64_t number : node.attrs.ints("split")) sizes.push_back(Dim(number));
  if (const DimList* known = values.of(node.input(1))) sizes = *known;
  if (sizes.empty() && !node.input(1)) {
    // Where parts may be unequal the last one is the shorter; elsewhere the axis divides.
    const bool unequal = node.attrs.integer("num_outputs") == count;
    const Dim each = unequal ? ceil_div(extent, count) : extent.divided_by(Dim(count));
    sizes.assign(node.outputs().size(), each);
    if (unequal) sizes.back() = extent - each * Dim(count - 1);
  }
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    std::vector<Dim> dims = x->shape().dims();
    dims[*axis] = i < sizes.size() ? sizes[i] : Dim();
    shapes.push_back(std::move(dims));
  }
  return shapes;
}

}  // namespace modelflow
