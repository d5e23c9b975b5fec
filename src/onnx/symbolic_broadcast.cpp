// Extents that come of broadcasting. Of two symbols either may stand for 1, so the result is neither of them, unless
// one is cut off the other.
#include "src/onnx/symbolic_broadcast.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "src/onnx/derived.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

/// PRelu by ONNX Runtime, which broadcasts x as well; by its definition the slopes alone.
constexpr std::array<std::string_view, 24> kBroadcasting = {
    "Add",         "Sub",        "Mul",       "Div",        "Pow",   "Mod",     "And",      "Or",
    "Xor",         "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater", "Less",     "GreaterOrEqual",
    "LessOrEqual", "Where",      "Max",       "Min",        "Sum",   "Mean",    "BitShift", "PRelu"};

/// The dim of a shape at a place of a longer one.
Dim aligned(const Shape& shape, std::size_t i, std::size_t rank) {
  return i + shape.rank() >= rank ? shape[i + shape.rank() - rank] : Dim(1);
}

Shape broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < rank; ++i) dims.push_back(broadcast(aligned(a, i, rank), aligned(b, i, rank)));
  return dims;
}

}  // namespace

Dim broadcast(const Dim& a, const Dim& b) {
  if (a == b || b.number() == 1) return a;
  if (a.number() == 1) return b;
  if (a.known()) return a;  // the other is 1, or the same
  if (b.known()) return b;
  // The table of positions, cut to the sequence: where it is 1 long so is the sequence.
  if (is_start_of(b, a)) return a;
  return is_start_of(a, b) ? b : Dim();
}

bool has_extent(const Shape& shape, const Dim& dim) {
  return shape.has_rank() && std::ranges::any_of(shape.dims(), [&](const Dim& other) { return other == dim; });
}

bool may_be_wild(const Dim& dim, const Shape& x) {
  if (never_negative(dim) || has_extent(x, dim)) return false;
  return dim.known() || !x.has_rank() || !never_negative(x.elements().divided_by(dim));
}

Shape expand_shape(const Node& node, ShapeValues& values) {
  constexpr std::int64_t kMostAxes = 16;
  const Value *x = node.input(0), *shape = node.input(1);
  if (!x || !shape || !x->shape().has_rank()) return {};
  if (const DimList* known = values.of(shape)) {
    DimList target = *known;
    for (Dim& dim : target)
      if (may_be_wild(dim, x->shape())) dim = {};
    return broadcast(x->shape(), Shape(std::move(target)));
  }
  const auto rank = shape->shape().has_rank() && shape->shape().rank() == 1 ? shape->shape()[0].number() : std::nullopt;
  if (!rank || *rank < 0 || *rank > kMostAxes) return {};
  return broadcast(x->shape(), Shape(std::vector<Dim>(static_cast<std::size_t>(*rank))));
}

Shape elementwise_shape(const Node& node) {
  if (std::ranges::find(kBroadcasting, node.op()) == kBroadcasting.end()) return {};
  // Before opset 7 the second operand was lined up by attributes.
  if (node.attrs.has("axis") || node.attrs.has("broadcast")) return {};
  Shape all;
  for (const Value* input : node.inputs()) {
    if (!input || !input->shape().has_rank()) return {};
    all = all.has_rank() ? broadcast(all, input->shape()) : input->shape();
  }
  return all;
}

}  // namespace modelflow
