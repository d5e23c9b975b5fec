// Walks from an output to the Concats that join it.
#include "src/verify/sections.h"

#include <algorithm>
#include <optional>

#include "src/verify/bounded.h"

namespace modelflow {
namespace {

constexpr int kDeepest = 12;

Sections sections(const Value* value, int depth);

std::optional<std::size_t> rank_of(const Value* value) {
  if (!value || !value->type.is_tensor() || !value->shape().has_rank()) return {};
  return value->shape().rank();
}

bool same(const std::vector<Section>& a, const std::vector<Section>& b) {
  return std::ranges::equal(a, b, [](const Section& x, const Section& y) { return x.begin == y.begin; });
}

/// What all operands have in common, and along the axis itself the operands.
Sections joined(const Node& node, std::size_t axis, int depth) {
  Sections all = sections(node.input(0), depth);
  std::vector<Section> operands;
  std::int64_t begin = 0;
  for (const Value* operand : node.inputs()) {
    const Sections own = sections(operand, depth);
    std::erase_if(all, [&](const auto& entry) {
      const auto found = own.find(entry.first);
      return found == own.end() || !same(found->second, entry.second);
    });
    operands.push_back({begin, floor_of(*operand)});
    const Dim& extent = operand->shape()[axis];
    if (!extent.known() && operand != node.inputs().back()) operands.clear();
    if (operands.empty()) break;
    begin += extent.known() ? extent.value() : 0;
  }
  all.erase(axis);
  if (operands.size() > 1 && operands.size() == node.inputs().size()) all[axis] = std::move(operands);
  return all;
}

Sections of_concat(const Node& node, int depth) {
  const std::optional<std::size_t> rank = rank_of(node.output());
  if (!rank || node.inputs().empty()) return {};
  if (!std::ranges::all_of(node.inputs(), [&](const Value* operand) { return rank_of(operand) == rank; })) return {};
  std::int64_t axis = node.attrs.integer("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(*rank);
  if (axis < 0 || static_cast<std::size_t>(axis) >= *rank) return {};
  return joined(node, static_cast<std::size_t>(axis), depth);
}

Sections transposed(const Node& node, int depth) {
  const Ints perm = node.attrs.ints("perm");
  Sections before = sections(node.input(0), depth), after;
  for (std::size_t i = 0; i < perm.size(); ++i)
    if (const auto found = before.find(static_cast<std::size_t>(perm[i])); found != before.end())
      after[i] = std::move(found->second);
  return after;
}

Sections reshaped(const Node& node, int depth) {
  const std::optional<std::size_t> from = rank_of(node.input(0)), to = rank_of(node.output());
  if (!from || !to || *from == 0 || *to == 0) return {};
  const Dim &last = node.input(0)->shape()[*from - 1], &now = node.output()->shape()[*to - 1];
  Sections before = sections(node.input(0), depth);
  const auto found = before.find(*from - 1);
  if (found == before.end() || !last.known() || !(last == now)) return {};
  return {{*to - 1, std::move(found->second)}};
}

Sections sections(const Value* value, int depth) {
  const Node* node = value ? value->producer() : nullptr;
  if (!node || depth > kDeepest) return {};
  if (node->is("Concat")) return of_concat(*node, depth + 1);
  if (node->is("Identity")) return sections(node->input(0), depth + 1);
  if (node->is("Transpose")) return transposed(*node, depth + 1);
  if (node->is("Reshape")) return reshaped(*node, depth + 1);
  return {};
}

/// The part of one axis that an index lies in.
std::size_t section_at(const std::vector<Section>& sections, std::int64_t index) {
  const auto behind = std::ranges::upper_bound(sections, index, {}, &Section::begin);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(behind - sections.begin() - 1, 0));
}

}  // namespace

Sections sections_of(const Value& value) { return sections(&value, 0); }

Cells cells_of(const Dims& dims, const Sections& sections, double floor) {
  const auto count = static_cast<std::size_t>(element_count(dims));
  Cells cells{std::vector<std::size_t>(count), {floor}};
  const bool fits = std::ranges::all_of(sections, [&](const auto& entry) { return entry.first < dims.size(); });
  if (!fits) return cells;
  for (const auto& [axis, parts] : sections) {
    const std::size_t before = cells.floors.size(), extent = static_cast<std::size_t>(dims[axis]);
    const Dims inside(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, dims.end());
    const auto inner = static_cast<std::size_t>(element_count(inside));
    std::vector<std::size_t> section(extent);
    for (std::size_t i = 0; i < extent; ++i) section[i] = section_at(parts, static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < count; ++i) cells.of[i] += before * section[i / inner % extent];
    for (std::size_t i = before; i < before * parts.size(); ++i)
      cells.floors.push_back(std::max(cells.floors[i % before], parts[i / before].floor));
    for (std::size_t i = 0; i < before; ++i) cells.floors[i] = std::max(cells.floors[i], parts[0].floor);
  }
  return cells;
}

}  // namespace modelflow
