// Slices and Splits of the last axis, and pairs of its elements exchanged with a change of sign.
#include "passes/fuse/last_axis.h"

#include <algorithm>

#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

std::optional<std::int64_t> last_extent(const Value* value) {
  if (rank_of(value).value_or(0) == 0 || !value->shape().back().known()) return {};
  return value->shape().back().value();
}

bool is_last(std::int64_t axis, const Value* value) {
  return axis == -1 || axis + 1 == static_cast<std::int64_t>(rank_of(value).value_or(0));
}

std::optional<LastAxisPart> read_slice(const Node& node) {
  const std::optional<Ints> starts = setting(node, "starts", 1), ends = setting(node, "ends", 2);
  const std::optional<Ints> axes = setting(node, "axes", 3), steps = setting(node, "steps", 4, {1});
  const std::optional<std::int64_t> extent = last_extent(node.input(0));
  if (!starts || !ends || !axes || !steps || !extent) return {};
  if (starts->size() != 1 || ends->size() != 1 || axes->size() != 1 || steps->size() != 1) return {};
  if (!is_last(axes->front(), node.input(0)) || steps->front() < 1) return {};
  const auto clamp = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + *extent : i, 0, *extent); };
  const std::int64_t start = clamp(starts->front()), end = clamp(ends->front()), step = steps->front();
  const std::int64_t way = std::max<std::int64_t>(end - start, 0);
  return LastAxisPart{node.input(0), start, way / step + (way % step != 0), step};
}

std::optional<LastAxisPart> read_split(const Node& node, std::size_t output) {
  if (!is_last(node.attrs.integer("axis"), node.input(0)) || !last_extent(node.input(0))) return {};
  std::int64_t start = 0;
  for (std::size_t i = 0; i <= output; ++i) {
    const std::optional<std::int64_t> length = node.output(i) ? last_extent(node.output(i)) : std::nullopt;
    if (!length) return {};
    if (i == output) return LastAxisPart{node.input(0), start, *length, 1};
    start += *length;
  }
  return {};
}

/// What is negated; null for other values.
const Value* negated(const Value* value) {
  if (const Node* node = made_by(value, "Neg")) return node->input(0);
  Value* x = nullptr;
  const Node* node = value ? value->producer() : nullptr;
  return node && scaled(*node, x) == -1.0f ? x : nullptr;
}

/// -second and first, as parts of one x.
std::optional<Crossed> crossed(const Value* opposite, const Value* straight) {
  const Value* negative = negated(opposite);
  const std::optional<LastAxisPart> second = negative ? read_part(*negative) : std::nullopt,
                                    first = straight ? read_part(*straight) : std::nullopt;
  if (!first || !second || first->x != second->x || first->start != 0) return {};
  if (first->length != second->length || first->step != second->step || first->step > 2) return {};
  const bool interleaved = first->step == 2;
  if (second->start != (interleaved ? 1 : first->length)) return {};
  return Crossed{first->x, interleaved, 2 * first->length};
}

/// Whether `more` has the axes of `fewer` and a last one of extent 1.
bool has_unit_axis(const Shape& more, const Shape& fewer) {
  return more.has_rank() && fewer.has_rank() && more.rank() == fewer.rank() + 1 && more.back().number() == 1 &&
         leading_alike(more, fewer, fewer.rank());
}

/// What is behind a new last axis of extent 1.
Value* without_unit_axis(const Value* value) {
  const Node* node = value ? value->producer() : nullptr;
  if (!node || (!node->is("Unsqueeze") && !node->is("Reshape"))) return nullptr;
  return has_unit_axis(value->shape(), node->input(0)->shape()) ? node->input(0) : nullptr;
}

/// What lost a last axis of extent 1.
Value* with_unit_axis(const Value* value) {
  const Node* node = value ? value->producer() : nullptr;
  if (!node || (!node->is("Squeeze") && !node->is("Reshape"))) return nullptr;
  return has_unit_axis(node->input(0)->shape(), value->shape()) ? node->input(0) : nullptr;
}

/// One column of x [..., columns], as [..., 1].
struct Column {
  Value* x = nullptr;
  std::int64_t index = 0;
  bool negated = false;
};

/// A Slice or Split, or what a Gather picks (PyTorch's unbind), negated on the way or not, and the axis dropped and put
/// back.
std::optional<Column> read_column(const Value& value) {
  bool opposite = false;
  for (const Value* at = &value; at;) {
    if (const std::optional<LastAxisPart> part = read_part(*at)) {
      if (part->length != 1) return {};
      return Column{part->x, part->start, opposite};
    }
    if (const Node* pick = made_by(at, "Gather")) {
      const std::optional<Ints> index = const_ints(pick->input(1));
      if (!index || index->size() != 1 || !is_last(pick->attrs.integer("axis"), pick->input(0))) return {};
      return Column{pick->input(0), index->front(), opposite};
    }
    if (const Value* x = negated(at)) {
      opposite = !opposite;
      at = x;
    } else {
      const Value* less = without_unit_axis(at);
      at = less ? less : with_unit_axis(at);
    }
  }
  return {};
}

/// x as [..., pairs, 2], whose columns change places, the first of them negated, and flat again: what the body of
/// Rotary does.
std::optional<Crossed> crossed_pairs(const Value& value) {
  const Node* flat = made_by(&value, "Reshape");
  const Node* columns = flat ? made_by(flat->input(0), "Concat") : nullptr;
  if (!columns || !joins_last_axis(*columns) || columns->inputs().size() != 2) return {};
  const std::optional<Column> second = read_column(*columns->input(0)), first = read_column(*columns->input(1));
  if (!first || !second || first->x != second->x || first->negated || !second->negated) return {};
  const auto is_column = [&](const Value* y) { return rank_of(y) == rank_of(first->x) && last_extent(y) == 1; };
  if (!is_column(columns->input(0)) || !is_column(columns->input(1))) return {};
  const Node* pairs = made_by(first->x, "Reshape");
  const auto at = [](const Column& column, std::int64_t i) { return column.index == i || column.index == i - 2; };
  if (!pairs || !at(*first, 0) || !at(*second, 1)) return {};
  Value* x = pairs->input(0);
  const std::optional<std::int64_t> width = last_extent(x);
  if (!width || last_extent(&value) != width) return {};
  const Shape &before = x->shape(), &apart = first->x->shape(), &after = value.shape();
  const std::size_t rank = before.rank();
  if (apart.rank() != rank + 1 || after.rank() != rank || apart.back().number() != 2) return {};
  if (!leading_alike(before, apart, rank - 1) || !leading_alike(before, after, rank - 1)) return {};
  if (2 * apart[rank - 1].number().value_or(0) != *width) return {};
  return Crossed{x, true, *width};
}

}  // namespace

bool joins_last_axis(const Node& node) {
  return node.is("Concat") && node.output() && is_last(node.attrs.integer("axis"), node.output());
}

std::optional<LastAxisPart> read_part(const Value& value) {
  const Node* node = value.producer();
  if (!node || !node->domain().empty()) return {};
  if (node->is("Slice")) return read_slice(*node);
  return node->is("Split") ? read_split(*node, value.output_index()) : std::nullopt;
}

std::optional<std::pair<Value*, Value*>> read_stack(const Value& value) {
  const Node* flat = made_by(&value, "Reshape");
  const Node* stack = flat ? made_by(flat->input(0), "Concat") : nullptr;
  if (!stack || !joins_last_axis(*stack) || stack->inputs().size() != 2) return {};
  Value *first = without_unit_axis(stack->input(0)), *second = without_unit_axis(stack->input(1));
  const std::optional<std::int64_t> half = last_extent(first);
  if (!second || !half || last_extent(&value) != 2 * *half) return {};
  const Shape &before = first->shape(), &after = value.shape();
  if (after.rank() != before.rank() || !leading_alike(before, after, before.rank() - 1)) return {};
  return std::pair(first, second);
}

std::optional<Crossed> read_crossed(const Value& value) {
  const Node* node = value.producer();
  if (node && joins_last_axis(*node) && node->inputs().size() == 2) {
    const std::optional<Crossed> found = crossed(node->input(0), node->input(1));
    return found && !found->interleaved ? found : std::nullopt;
  }
  if (const std::optional<Crossed> pairs = crossed_pairs(value)) return pairs;
  const std::optional<std::pair<Value*, Value*>> columns = read_stack(value);
  const std::optional<Crossed> found = columns ? crossed(columns->first, columns->second) : std::nullopt;
  return found && found->interleaved ? found : std::nullopt;
}

}  // namespace modelflow::passes
