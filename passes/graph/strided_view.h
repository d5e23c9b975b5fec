// A value as strided runs of another one.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow::passes {

/// Where the elements of a value lie in another one of which it is a view: every axis of the view is made of strided
/// runs along axes of the source. Follows what only moves, picks or repeats elements.
///
///     StridedView view(x.shape());
///     view.follow(*reshape.output()) && view.follow(*transpose.output());    // false: it cannot be told
class StridedView {
 public:
  static constexpr std::size_t kRepeated = ~std::size_t{0};
  struct Run {
    std::size_t axis;    ///< of the source; kRepeated: the same element again and again
    Dim extent, stride;  ///< in elements of that axis
  };
  using Axis = std::vector<Run>;  ///< the outermost run first; none: extent 1

  explicit StridedView(const Shape& source);

  /// One step more: `value` is computed by a Transpose, Reshape, Squeeze, Unsqueeze, Flatten, Expand, Identity, Split,
  /// Slice or Gather (of one index, or of neighbours in order, each as often as the others) from the present view.
  bool follow(const Value& value);
  bool reshape(const Shape& shape, const Ints* target = nullptr);
  bool transpose(const Ints& perm);

  const std::vector<Axis>& axes() const { return axes_; }
  /// The axes with neighbouring runs joined; `windows`: the first two, images and their windows, as one axis.
  std::vector<Axis> joined_axes(bool windows) const;
  /// Where the view begins along an axis of the source.
  const Dim& offset(std::size_t axis) const { return offsets_[axis]; }
  /// The axis of `source` that this axis of the view shows unchanged. Nothing when it shows a part of one or several,
  /// or has extent 1. `source` is the shape of the tensor that the view is of.
  std::optional<std::size_t> source_axis(std::size_t axis, const Shape& source) const;
  /// Neighbouring runs that go on in one stride as one run.
  static Axis joined(const Axis& axis);

 private:
  Dim extent(std::size_t axis) const;
  std::optional<Axis> take(std::deque<Run>& queue, Dim left, bool front) const;
  bool expand(const Shape& shape);
  bool pick(const Node& gather);
  bool repeat(std::size_t axis, const Ints& indices);
  bool squeeze(const Node& node, bool add);
  bool split(const Node& node, std::size_t output);
  bool slice(const Node& node);
  bool narrow(std::size_t axis, std::int64_t start, std::int64_t length);

  std::vector<Axis> axes_;
  std::vector<Dim> offsets_;
};

/// A target of Reshape: -1 and the extents from axis `from` on; nothing where one of these is unknown or 0.
std::optional<Ints> open_target(const Shape& shape, std::size_t from);

}  // namespace modelflow::passes
