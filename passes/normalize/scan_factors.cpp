// Factors told apart by their axes, and laid out as the fused op takes them.
#include "passes/normalize/scan_factors.h"

#include <algorithm>

#include "passes/graph/edits.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::size_t kRank = 4;

/// An extent of what broadcasts to kRank axes.
Dim extent(const Value& value, std::int64_t axis) {
  const std::size_t missing = kRank - value.shape().rank();
  const auto at = static_cast<std::size_t>(axis);
  return at < missing ? Dim(1) : value.shape()[at - missing];
}

bool absent_from(const Value& value, const std::vector<std::int64_t>& axes) {
  return std::ranges::all_of(axes, [&](std::int64_t axis) { return extent(value, axis) == Dim(1); });
}

/// Together they have every axis of the product but these.
bool cover(const std::vector<Value*>& factors, const Value& product, const std::vector<std::int64_t>& absent) {
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(kRank); ++axis) {
    if (std::ranges::count(absent, axis)) continue;
    const auto has = [&](const Value* factor) { return extent(*factor, axis) == extent(product, axis); };
    if (std::ranges::none_of(factors, has)) return false;
  }
  return true;
}

bool split(Value& value, const ScanAxes& axes, const std::vector<std::int64_t>& absent, ScanFactors& into) {
  if (value.dtype() != DType::f32 || rank_of(&value).value_or(kRank + 1) > kRank) return false;
  if (absent_from(value, {axes.state})) return into.rows.push_back(&value), true;
  if (absent_from(value, absent)) return into.others.push_back(&value), true;
  const Node* product = made_by(&value, "Mul");
  return product && split(*product->input(0), axes, absent, into) && split(*product->input(1), axes, absent, into);
}

}  // namespace

ScanAxes::ScanAxes(std::int64_t time)
    : batch(time == 0 ? 1 : 0), time(time), channel(time <= 1 ? 2 : 1), state(time == 3 ? 2 : 3) {}

bool ScanFactors::read(Value& product, const ScanAxes& axes, const std::vector<std::int64_t>& absent) {
  return split(product, axes, absent, *this) && cover(rows, product, {axes.state}) && cover(others, product, absent);
}

Value& joined_factors(Build& build, const std::vector<Value*>& factors, const std::vector<std::int64_t>& kept) {
  Ints dropped, perm, order = kept;
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(kRank); ++axis)
    if (!std::ranges::count(kept, axis)) dropped.push_back(axis);
  std::ranges::sort(order);
  for (const std::int64_t axis : kept) perm.push_back(std::ranges::find(order, axis) - order.begin());
  Value* all = nullptr;
  for (Value* factor : factors) {
    Ints in_front(kRank - factor->shape().rank());
    for (std::size_t i = 0; i < in_front.size(); ++i) in_front[i] = static_cast<std::int64_t>(i);
    Value& whole = in_front.empty() ? *factor : with_axes(build, "Unsqueeze", *factor, in_front);
    Value* laid = &with_axes(build, "Squeeze", whole, dropped);
    if (!std::ranges::is_sorted(perm)) laid = &build.op("Transpose", {laid}, {{"perm", perm}});
    all = all ? &build.op("Mul", {all, laid}) : laid;
  }
  return *all;
}

}  // namespace modelflow::passes
