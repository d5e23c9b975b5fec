// Reshape, Transpose, Slice, Expand and their like, followed as strided runs of the source.
#include "passes/graph/strided_view.h"

#include <algorithm>

#include "passes/graph/facts.h"

namespace modelflow::passes {

StridedView::StridedView(const Shape& source) : offsets_(source.rank(), Dim(0)) {
  for (std::size_t i = 0; i < source.rank(); ++i) {
    axes_.emplace_back();
    if (source[i].number() == 1) continue;
    const Dim extent = source[i].unknown() ? Dim::symbol("extent of axis " + std::to_string(i)) : source[i];
    axes_.back().push_back({i, extent, Dim(1)});
  }
}

std::optional<std::size_t> StridedView::source_axis(std::size_t axis, const Shape& source) const {
  const Axis runs = joined(axes_[axis]);
  if (runs.size() != 1 || runs[0].axis == kRepeated || runs[0].stride.number() != 1) return {};
  return runs[0].extent == source[runs[0].axis] ? std::optional(runs[0].axis) : std::nullopt;
}

StridedView::Axis StridedView::joined(const Axis& axis) {
  Axis out;
  for (const Run& run : axis) {
    if (!out.empty() && out.back().axis == run.axis &&
        (run.axis == kRepeated || out.back().stride == run.stride * run.extent)) {
      out.back().extent = out.back().extent * run.extent;
      out.back().stride = run.stride;
    } else {
      out.push_back(run);
    }
  }
  return out;
}

std::vector<StridedView::Axis> StridedView::joined_axes(bool windows) const {
  std::vector<Axis> axes = axes_;
  if (windows && axes.size() > 1) {
    axes[1].insert(axes[1].begin(), axes[0].begin(), axes[0].end());
    axes.erase(axes.begin());
  }
  for (Axis& axis : axes) axis = joined(axis);
  return axes;
}

std::optional<Ints> open_target(const Shape& shape, std::size_t from) {
  Ints target = {-1};
  for (std::size_t i = from; i < shape.rank(); ++i) {
    if (shape[i].number().value_or(0) <= 0) return {};
    target.push_back(shape[i].value());
  }
  return target;
}

Dim StridedView::extent(std::size_t axis) const {
  Dim product = 1;
  for (const Run& run : axes_[axis]) product = product * run.extent;
  return product;
}

bool StridedView::transpose(const Ints& perm) {
  if (perm.size() != axes_.size()) return false;
  std::vector<Axis> axes;
  for (const std::int64_t axis : perm) {
    if (axis < 0 || static_cast<std::size_t>(axis) >= axes_.size()) return false;
    axes.push_back(axes_[static_cast<std::size_t>(axis)]);
  }
  axes_ = std::move(axes);
  return true;
}

/// Takes runs from one end of the queue until they make up an axis of extent `left`; a longer one is cut.
std::optional<StridedView::Axis> StridedView::take(std::deque<Run>& queue, Dim left, bool front) const {
  Axis axis;
  while (left.number() != 1) {
    if (queue.empty()) return std::nullopt;
    Run run = front ? queue.front() : queue.back();
    front ? queue.pop_front() : queue.pop_back();
    const Dim more = left.divided_by(run.extent), rest = run.extent.divided_by(left);
    if (run.extent == left) {
      left = 1;
    } else if (!more.unknown()) {
      left = more;
    } else if (!rest.unknown()) {
      const Run outer{run.axis, front ? left : rest, run.stride * (front ? rest : left)};
      const Run inner{run.axis, front ? rest : left, run.stride};
      front ? queue.push_front(inner) : queue.push_back(outer);
      run = front ? outer : inner;
      left = 1;
    } else {
      return std::nullopt;
    }
    axis.insert(front ? axis.end() : axis.begin(), run);
  }
  return axis;
}

/// `target`, where it is constant, tells more than the shape: 0 keeps an axis of unknown extent.
bool StridedView::reshape(const Shape& shape, const Ints* target) {
  if (!shape.has_rank() || (target && target->size() != shape.rank())) return false;
  const std::size_t rank = shape.rank();
  std::size_t kept = 0;
  const auto same = [&](std::size_t i) { return (target && (*target)[i] == 0) || shape[i] == extent(i); };
  while (kept < rank && kept < axes_.size() && same(kept)) ++kept;
  std::deque<Run> queue;
  for (std::size_t i = kept; i < axes_.size(); ++i) queue.insert(queue.end(), axes_[i].begin(), axes_[i].end());
  std::vector<Axis> axes(axes_.begin(), axes_.begin() + static_cast<std::ptrdiff_t>(kept));
  axes.resize(rank);
  // One axis may be open: it takes what the others leave.
  std::size_t open = kept;
  while (open < rank && !shape[open].unknown()) ++open;
  for (std::size_t i = kept; i < open; ++i) {
    std::optional<Axis> axis = take(queue, shape[i], true);
    if (!axis) return false;
    axes[i] = std::move(*axis);
  }
  for (std::size_t i = rank; i-- > open + 1;) {
    if (shape[i].unknown()) return false;
    std::optional<Axis> axis = take(queue, shape[i], false);
    if (!axis) return false;
    axes[i] = std::move(*axis);
  }
  if (open < rank) axes[open].assign(queue.begin(), queue.end());
  if (open == rank && !queue.empty()) return false;
  axes_ = std::move(axes);
  return true;
}

bool StridedView::expand(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() < axes_.size()) return false;
  std::vector<Axis> axes(shape.rank());
  const std::size_t added = shape.rank() - axes_.size();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i >= added) axes[i] = axes_[i - added];
    if (shape[i].number() == 1) continue;
    if (axes[i].empty()) {
      if (shape[i].unknown()) return false;
      axes[i].push_back({kRepeated, shape[i], Dim(0)});
    } else if (const Dim now = extent(i - added); !(now == shape[i]) && !now.known()) {
      return false;  // it may be 1
    }
  }
  axes_ = std::move(axes);
  return true;
}

/// A part of an axis: whole steps of its outermost run.
bool StridedView::narrow(std::size_t axis, std::int64_t start, std::int64_t length) {
  Axis runs = joined(axes_[axis]);
  if (runs.empty()) return start == 0 && length == 1;
  Dim inner = 1;
  for (std::size_t i = 1; i < runs.size(); ++i) inner = inner * runs[i].extent;
  if (!inner.known() || inner.value() == 0 || start % inner.value() != 0 || length % inner.value() != 0) return false;
  Run& outer = runs.front();
  if (outer.axis != kRepeated) offsets_[outer.axis] = offsets_[outer.axis] + Dim(start / inner.value()) * outer.stride;
  outer.extent = length / inner.value();
  if (outer.extent.number() == 1) runs.erase(runs.begin());
  axes_[axis] = std::move(runs);
  return true;
}

/// Gather of one index: the axis goes, or stays as 1 where the index is a vector.
bool StridedView::pick(const Node& gather) {
  const std::optional<Ints> axis = positive({gather.attrs.integer("axis", 0)}, static_cast<std::int64_t>(axes_.size()));
  const std::optional<Ints> index = const_ints(gather.input(1));
  if (!axis || !index || index->empty()) return false;
  const auto a = static_cast<std::size_t>((*axis)[0]);
  if (index->size() > 1) return gather.input(1)->constant()->rank() == 1 && repeat(a, *index);
  std::int64_t at = (*index)[0];
  const Dim size = extent(a);
  if (at < 0 && !size.known()) return false;
  if (at < 0) at += size.value();
  // One step of several runs at once: the innermost first.
  Axis runs = joined(axes_[a]);
  while (!runs.empty()) {
    const Run run = runs.back();
    runs.pop_back();
    if (!runs.empty() && run.extent.number().value_or(0) < 1) return false;
    const std::int64_t step = runs.empty() ? at : at % run.extent.value();
    if (!runs.empty()) at /= run.extent.value();
    if (run.axis != kRepeated) offsets_[run.axis] = offsets_[run.axis] + Dim(step) * run.stride;
  }
  axes_[a].clear();
  const std::size_t rank = gather.input(1)->constant()->rank();
  if (rank == 0) axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(a));
  return rank <= 1;
}

/// Gather of indices such as 2, 2, 3, 3: heads of keys that several heads of queries read.
bool StridedView::repeat(std::size_t axis, const Ints& indices) {
  const auto size = static_cast<std::int64_t>(indices.size()), first = indices[0];
  const auto again =
      static_cast<std::int64_t>(std::ranges::find_if(indices, [&](auto i) { return i != first; }) - indices.begin());
  if (first < 0 || size % again != 0) return false;
  for (std::int64_t i = 0; i < size; ++i)
    if (indices[static_cast<std::size_t>(i)] != first + i / again) return false;
  if (!narrow(axis, first, size / again)) return false;
  if (again > 1) axes_[axis].push_back({kRepeated, again, Dim(0)});
  return true;
}

bool StridedView::split(const Node& node, std::size_t output) {
  const std::optional<Ints> axis = positive({node.attrs.integer("axis", 0)}, static_cast<std::int64_t>(axes_.size()));
  if (!axis) return false;
  const auto a = static_cast<std::size_t>((*axis)[0]);
  std::optional<Ints> sizes = setting(node, "split", 1);
  if (!sizes) return false;
  if (sizes->empty()) {
    const Dim all = extent(a);
    const auto parts = static_cast<std::int64_t>(node.outputs().size());
    if (!all.known() || all.value() % parts != 0) return false;
    sizes = Ints(node.outputs().size(), all.value() / parts);
  }
  std::int64_t start = 0;
  for (std::size_t i = 0; i < output && i < sizes->size(); ++i)
    if (__builtin_add_overflow(start, (*sizes)[i], &start)) return false;
  return output < sizes->size() && narrow(a, start, (*sizes)[output]);
}

bool StridedView::slice(const Node& node) {
  const std::optional<Ints> starts = setting(node, "starts", 1), ends = setting(node, "ends", 2);
  const std::optional<Ints> given = setting(node, "axes", 3), steps = setting(node, "steps", 4);
  if (!starts || !ends || !given || !steps || starts->size() != ends->size()) return false;
  if (std::any_of(steps->begin(), steps->end(), [](std::int64_t step) { return step != 1; })) return false;
  Ints axes = *given;
  for (std::size_t i = 0; given->empty() && i < starts->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  const std::optional<Ints> places = positive(axes, static_cast<std::int64_t>(axes_.size()));
  if (!places || places->size() != starts->size()) return false;
  for (std::size_t i = 0; i < places->size(); ++i) {
    const auto axis = static_cast<std::size_t>((*places)[i]);
    const Dim size = extent(axis);
    if (!size.known() || size.value() < 0) return false;
    const auto inside = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + size.value() : at, 0, size.value());
    };
    const std::int64_t start = inside((*starts)[i]), end = inside((*ends)[i]);
    if (end <= start || !narrow(axis, start, end - start)) return false;
  }
  return true;
}

/// Axes of extent 1 come or go.
bool StridedView::squeeze(const Node& node, bool add) {
  std::optional<Ints> axes = setting(node, "axes", 1);
  if (!axes || (axes->empty() && !add)) return false;
  axes = positive(*axes, static_cast<std::int64_t>(axes_.size() + (add ? axes->size() : 0)));
  if (!axes) return false;
  if (add)
    std::ranges::sort(*axes);
  else
    axes = each_once(*axes);
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const auto axis = (*axes)[i] - (add ? 0 : static_cast<std::int64_t>(i));
    if (add)
      axes_.insert(axes_.begin() + axis, Axis());
    else if (axes_[static_cast<std::size_t>(axis)].empty())
      axes_.erase(axes_.begin() + axis);
    else
      return false;
  }
  return true;
}

bool StridedView::follow(const Value& value) {
  const Node* node = value.producer();
  if (!node || !node->domain().empty()) return false;
  if (node->is("Identity")) return true;
  if (node->is("Transpose")) {
    Ints perm = node->attrs.ints("perm");
    for (std::size_t i = axes_.size(); perm.size() < axes_.size() && i-- > 0;)
      perm.push_back(static_cast<std::int64_t>(i));
    return transpose(perm);
  }
  if (node->is("Gather")) return pick(*node);
  if (node->is("Split")) return split(*node, value.output_index());
  if (node->is("Slice")) return slice(*node);
  if (node->is("Expand")) return expand(value.shape());
  if (node->is("Reshape")) {
    const std::optional<Ints> target = const_ints(node->input(1));
    return reshape(value.shape(), target && node->attrs.integer("allowzero") == 0 ? &*target : nullptr);
  }
  if (node->is("Squeeze") && !node->attrs.has("axes") && !node->input(1)) return reshape(value.shape());
  if (node->is("Squeeze") || node->is("Unsqueeze")) return squeeze(*node, node->is("Unsqueeze"));
  if (node->is("Flatten")) return reshape(value.shape());
  return false;
}

}  // namespace modelflow::passes
