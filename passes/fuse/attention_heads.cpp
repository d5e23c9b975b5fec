// From an operand of an attention's product back through whatever only moves, picks, repeats or scales.
#include "passes/fuse/attention_heads.h"

#include <algorithm>

#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

using Axis = StridedView::Axis;

/// The roles of the axes of a product's operand.
struct Roles {
  Axis lead, heads, sequence, size;  // rank 3: batch and heads lie together in lead
  bool together = false;
};

std::optional<Roles> roles_of(const StridedView& view, bool transposed) {
  std::vector<Axis> axes = view.joined_axes(view.axes().size() == 5);
  if (axes.size() != 3 && axes.size() != 4) return {};
  const std::size_t last = axes.size() - 1;
  if (transposed) std::swap(axes[last], axes[last - 1]);
  if (axes.size() == 4) return Roles{axes[0], axes[1], axes[2], axes[3]};
  return Roles{axes[0], {}, axes[1], axes[2], true};
}

/// Nothing but all of axis `axis` of the source.
bool is_all_of(const Axis& runs, const Shape& source, std::size_t axis) {
  if (runs.empty()) return source[axis].number() == 1;
  if (runs.size() != 1 || runs[0].axis != axis || runs[0].stride.number() != 1) return false;
  return source[axis].unknown() ? !runs[0].extent.known() : runs[0].extent == source[axis];
}

struct Reading {
  const Shape& shape;
  const StridedView& view;
  Roles roles;

  /// Splits what leads into batch, along `axis` of the source, and heads; strips repetition off the heads.
  bool separate(std::size_t axis, std::int64_t& group) {
    if (roles.together) {
      const auto is_batch = [axis](const StridedView::Run& run) { return run.axis == axis; };
      const auto end = std::find_if_not(roles.lead.begin(), roles.lead.end(), is_batch);
      roles.heads.assign(end, roles.lead.end());
      roles.lead.erase(end, roles.lead.end());
    }
    if (roles.heads.empty() || roles.heads.back().axis != StridedView::kRepeated) return true;
    if (!roles.heads.back().extent.known()) return false;
    group = roles.heads.back().extent.value();
    roles.heads.pop_back();
    return true;
  }

  bool begins_at_zero() const {
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (view.offset(i).number() != 0) return false;
    return true;
  }

  std::optional<Heads> four_axes(Heads::Form form) {
    const bool turned = form == Heads::Form::bnhs, heads_second = turned || form == Heads::Form::bnsh;
    const std::size_t heads = heads_second ? 1 : 2, size = turned ? 2 : 3, sequence = 6 - heads - size;
    Heads found(form);
    if (!separate(0, found.group) || !shape[heads].known() || !begins_at_zero()) return {};
    if (!is_all_of(roles.lead, shape, 0) || !is_all_of(roles.heads, shape, heads) ||
        !is_all_of(roles.sequence, shape, sequence) || !is_all_of(roles.size, shape, size))
      return {};
    found.heads = shape[heads].value();
    found.size = shape[size];
    return found;
  }

  std::optional<Heads> three_axes(Heads::Form form) {
    const std::size_t batch = form == Heads::Form::sbh ? 1 : 0, columns = form == Heads::Form::bhs ? 1 : 2;
    const std::size_t sequence = 3 - batch - columns;
    Heads found(form);
    if (!separate(batch, found.group) || !shape[columns].known() || shape[columns].value() > Heads::kWidest) return {};
    if (!is_all_of(roles.lead, shape, batch) || !is_all_of(roles.sequence, shape, sequence)) return {};
    const std::optional<Ints> heads = places(roles.heads, columns), size = places(roles.size, columns);
    if (!heads || !size || !view.offset(columns).known()) return {};
    if (view.offset(batch).number() != 0 || view.offset(sequence).number() != 0) return {};
    for (const std::int64_t head : *heads)
      for (const std::int64_t place : *size) found.columns.push_back(view.offset(columns).value() + head + place);
    found.heads = static_cast<std::int64_t>(heads->size());
    found.size = static_cast<std::int64_t>(size->size());
    return found;
  }

  /// The places along an axis, one by one.
  static std::optional<Ints> places(const Axis& runs, std::size_t axis) {
    Ints list = {0};
    for (const StridedView::Run& run : runs) {
      if (run.axis != axis || !run.extent.known() || !run.stride.known()) return {};
      Ints longer;
      for (const std::int64_t place : list)
        for (std::int64_t i = 0; i < run.extent.value(); ++i) longer.push_back(place + i * run.stride.value());
      list = std::move(longer);
      if (static_cast<std::int64_t>(list.size()) > Heads::kWidest) return {};
    }
    return list;
  }
};

std::vector<Heads> read(const Shape& shape, const StridedView& view, bool transposed) {
  std::vector<Heads> found;
  const std::optional<Roles> roles = roles_of(view, transposed);
  if (!roles) return found;
  const auto add = [&](std::optional<Heads> heads) {
    if (heads && heads->heads != 0 && heads->size.number() != 0) found.push_back(std::move(*heads));
  };
  if (shape.rank() == 3) {
    add(Reading{shape, view, *roles}.three_axes(Heads::Form::bsh));
    add(Reading{shape, view, *roles}.three_axes(Heads::Form::sbh));
    add(Reading{shape, view, *roles}.three_axes(Heads::Form::bhs));
  } else if (shape.rank() == 4) {
    add(Reading{shape, view, *roles}.four_axes(Heads::Form::bsnd));
    add(Reading{shape, view, *roles}.four_axes(Heads::Form::bnsh));
    add(Reading{shape, view, *roles}.four_axes(Heads::Form::bnhs));
  }
  return found;
}

/// Images and their windows as one batch. What is behind them must be known to be written as a target of Reshape.
std::optional<Shape> with_windows_joined(const Shape& shape) {
  std::vector<Dim> dims = shape.dims();
  if (dims.size() < 4 || !open_target(shape, 1)) return {};
  dims[1] = dims[0] * dims[1];
  dims.erase(dims.begin());
  return Shape(std::move(dims));
}

/// Rows and columns of pixels, as a convolution writes them, as one sequence.
std::optional<Shape> with_pixels_joined(const Value& value) {
  const Shape& shape = value.shape();
  if (!made_by(&value, "Conv") || shape.rank() != 4 || !shape[2].known() || !shape[3].known()) return {};
  return Shape(std::vector<Dim>{shape[0], shape[1], shape[2] * shape[3]});
}

/// What the value at `from` can be read as: an image is a sequence of pixels; the operand, the first of the values, has
/// windows as an axis of its own, or a Reshape joins them with the images.
std::vector<Shape> readings(const std::vector<Value*>& values, std::size_t from) {
  std::vector<Shape> all = {values[from]->shape()};
  if (std::optional<Shape> pixels = with_pixels_joined(*values[from])) all.push_back(std::move(*pixels));
  std::optional<Shape> joined = with_windows_joined(all[0]);
  if (!joined) return all;
  const Shape next = from > 0 ? values[from - 1]->shape() : Shape();
  const bool joins = next.has_rank() && next.rank() > 1 && !next[0].unknown() && next[0] == (*joined)[0];
  if (joins || values[0]->shape().rank() == 5) all.push_back(std::move(*joined));
  return all;
}

/// The values from `operand` back to where views end.
std::vector<Value*> values_behind(Value& operand) {
  std::vector<Value*> values = {&operand};
  while (Node* node = values.back()->producer()) {
    if (&node->graph() != &operand.graph()) break;
    Value* next = node->input(0);
    static constexpr const char* kViews[] = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                             "Expand",    "Gather",  "Split",   "Slice",     "Identity"};
    const bool view = std::any_of(std::begin(kViews), std::end(kViews), [&](const char* op) { return node->is(op); });
    if (!view && !scaled(*node, next)) break;
    if (!next || !next->type.is_tensor() || !next->shape().has_rank() || next->constant()) break;
    values.push_back(next);
  }
  return values;
}

}  // namespace

bool Heads::pixels() const {
  const std::optional<Shape> as = with_pixels_joined(*value);
  return joined() && as && shape[1] == (*as)[1] && shape[2] == (*as)[2];
}

bool Heads::whole() const {
  const Dim& width = shape[form == Form::bhs ? 1 : shape.rank() - 1];
  if (width.number() != static_cast<std::int64_t>(columns.size())) return false;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

bool Heads::read_only_by(const std::set<const Node*>& nodes) const {
  return std::all_of(passed.begin(), passed.end(), [&](const Value* value) {
    const auto inside = [&](const Use& use) { return nodes.contains(use.node); };
    return !value->is_graph_output() && std::all_of(value->uses().begin(), value->uses().end(), inside);
  });
}

std::vector<Heads> read_heads(Value& operand, bool transposed) {
  std::vector<Heads> all;
  if (!operand.type.is_tensor() || !operand.shape().has_rank()) return all;
  const std::vector<Value*> values = values_behind(operand);
  for (std::size_t from = values.size(); from-- > 0;)
    for (const Shape& shape : readings(values, from)) {
      StridedView view(shape);
      if (shape.rank() != values[from]->shape().rank() && !view.reshape(values[from]->shape())) continue;
      float factor = 1;
      bool told = true;
      for (std::size_t i = from; told && i-- > 0;) {
        Value* x = nullptr;
        const std::optional<float> number = scaled(*values[i]->producer(), x);
        if (number) factor *= *number;
        told = number || view.follow(*values[i]);
      }
      if (!told) continue;
      for (Heads& heads : read(shape, view, transposed)) {
        heads.value = values[from];
        heads.shape = shape;
        heads.factor = factor;
        heads.together = operand.shape().rank() == 3;
        heads.passed.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(from));
        all.push_back(std::move(heads));
      }
    }
  return all;
}

}  // namespace modelflow::passes
