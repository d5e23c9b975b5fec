// Factors told apart by their axes, and laid out as the fused op takes them.
#include "passes/normalize/scan_factors.h"

#include <algorithm>

#include "passes/graph/edits.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kRank = 4;

/// An extent of what broadcasts to kRank axes.
Dim extent(const Value& value, std::int64_t axis) {
  const std::int64_t at = axis - (kRank - static_cast<std::int64_t>(value.shape().rank()));
  return at < 0 ? Dim(1) : value.shape()[static_cast<std::size_t>(at)];
}

}  // namespace

ScanAxes::ScanAxes(std::int64_t time)
    : batch(time == 0 ? 1 : 0), time(time), channel(time <= 1 ? 2 : 1), state(time == 3 ? 2 : 3) {}

bool has_axes(const Value& value, const Value& product, const std::vector<std::int64_t>& absent) {
  if (value.dtype() != DType::f32 || rank_of(&value).value_or(kRank + 1) > kRank) return false;
  for (std::int64_t axis = 0; axis < kRank; ++axis)
    if (extent(value, axis) != (std::ranges::count(absent, axis) ? Dim(1) : extent(product, axis))) return false;
  return true;
}

bool ScanFactors::read(const Value& product, const ScanAxes& axes, const std::vector<std::int64_t>& absent) {
  const Node* node = made_by(&product, "Mul");
  for (const std::size_t i : {0, 1}) {
    if (!node || !has_axes(*node->input(i), product, {axes.state}) || !has_axes(*node->input(1 - i), product, absent))
      continue;
    row = node->input(i);
    other = node->input(1 - i);
    return true;
  }
  return false;
}

Value& laid_out(Build& build, Value& factor, const std::vector<std::int64_t>& kept) {
  Ints in_front, dropped, perm, order = kept;
  for (std::int64_t axis = 0; axis < kRank; ++axis) {
    if (axis < kRank - static_cast<std::int64_t>(factor.shape().rank())) in_front.push_back(axis);
    if (!std::ranges::count(kept, axis)) dropped.push_back(axis);
  }
  std::ranges::sort(order);
  for (const std::int64_t axis : kept) perm.push_back(std::ranges::find(order, axis) - order.begin());
  Value& whole = in_front.empty() ? factor : with_axes(build, "Unsqueeze", factor, in_front);
  Value& part = with_axes(build, "Squeeze", whole, dropped);
  return std::ranges::is_sorted(perm) ? part : build.op("Transpose", {&part}, {{"perm", perm}});
}

}  // namespace modelflow::passes
