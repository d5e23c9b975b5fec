// Counting as counting.h says it.
#include "passes/clean/counting.h"

#include "passes/graph/strided_view.h"

namespace modelflow::passes {
namespace {

constexpr int kMostDepth = 8;  // sums of sums

bool is_view_of_all(const Node& node) { return is_view(node) || node.is("Expand") || node.is("Identity"); }

}  // namespace

std::optional<Steps> steps_of(const Ints& values, const Dims& dims) {
  if (values.empty() || values[0] != 0) return {};
  std::vector<std::int64_t> steps(dims.size(), 0), inner(dims.size(), 1);
  for (std::size_t axis = dims.size(); axis-- > 1;) inner[axis - 1] = inner[axis] * dims[axis];
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (dims[axis] > 1) steps[axis] = values[static_cast<std::size_t>(inner[axis])];
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t rest = values[i];
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      rest -= steps[axis] * (static_cast<std::int64_t>(i) / inner[axis] % dims[axis]);
    if (rest != 0) return {};
  }
  return Steps(steps.begin(), steps.end());
}

std::optional<Steps> Counting::of(const Value& value, int depth) {
  if (const std::optional<Ints> ints = const_ints(&value)) return steps_of(*ints, value.constant()->dims());
  const Node* node = value.producer();
  if (!node || !node->domain().empty() || depth > kMostDepth) return {};
  if (node->is("Range")) {
    const bool ones = const_number(node->input(0)) == 0.0 && const_number(node->input(2)) == 1.0;
    return ones ? std::optional(Steps{1}) : std::nullopt;
  }
  if (node->is("Cast") && (value.dtype() == DType::i64 || value.dtype() == DType::i32)) {
    const DType from = node->input(0)->dtype();
    return from == DType::i64 || from == DType::i32 ? of(*node->input(0), depth + 1) : std::nullopt;
  }
  if (is_view_of_all(*node)) return of_view(value, depth);
  if (node->is("Mul")) return of_product(value, depth);
  return node->is("Add") ? of_sum(value, depth) : std::nullopt;
}

std::optional<Steps> Counting::of_view(const Value& value, int depth) {
  const Value& source = *value.producer()->input(0);
  if (!source.shape().has_rank()) return {};
  const std::optional<Steps> steps = of(source, depth + 1);
  StridedView view(source.shape());
  if (!steps || steps->size() != source.shape().rank() || !view.follow(value)) return {};
  Steps found;
  for (const StridedView::Axis& axis : view.axes()) {
    const StridedView::Axis runs = StridedView::joined(axis);
    if (runs.size() > 1) return {};
    const bool repeated = runs.empty() || runs[0].axis == StridedView::kRepeated;
    found.push_back(repeated ? Dim(0) : (*steps)[runs[0].axis] * runs[0].stride);
  }
  return found;
}

/// By one number, which may be an extent.
std::optional<Steps> Counting::of_product(const Value& value, int depth) {
  const Node& node = *value.producer();
  for (const std::size_t i : {0, 1}) {
    const DimList* factor = extents_.of(node.input(i));
    if (!factor || factor->size() != 1 || (*factor)[0].unknown()) continue;
    if (rank_of(node.input(1 - i)) != rank_of(&value)) return {};
    std::optional<Steps> steps = of(*node.input(1 - i), depth + 1);
    for (std::size_t axis = 0; steps && axis < steps->size(); ++axis) (*steps)[axis] = (*steps)[axis] * (*factor)[0];
    return steps;
  }
  return {};
}

std::optional<Steps> Counting::of_sum(const Value& value, int depth) {
  if (!value.shape().has_rank()) return {};
  Steps sum(value.shape().rank(), Dim(0));
  for (const Value* part : value.producer()->inputs()) {
    if (!part->shape().has_rank() || part->shape().rank() > sum.size()) return {};
    const std::optional<Steps> steps = of(*part, depth + 1);
    if (!steps || steps->size() != part->shape().rank()) return {};
    const std::size_t added = sum.size() - steps->size();
    for (std::size_t axis = 0; axis < steps->size(); ++axis) {
      if ((*steps)[axis].number() == 0) continue;
      if (!(part->shape()[axis] == value.shape()[added + axis])) return {};  // one that is repeated does not count
      sum[added + axis] = sum[added + axis] + (*steps)[axis];
    }
  }
  return sum;
}

}  // namespace modelflow::passes
