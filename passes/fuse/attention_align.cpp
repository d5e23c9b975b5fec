// Masks as exporters write them beside scores, brought to [batch, heads, queries, keys].
#include "passes/fuse/attention_align.h"

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

Value& MaskAligner::ints(const Ints& list) { return build_.constant(tensor_of(list), "shape"); }

Verdict MaskAligner::align(Value*& value, const Shape& scores) {
  const std::optional<std::size_t> rank = rank_of(value);
  if (!rank || *rank > scores.rank()) return no("the mask would raise the rank of the scores", value->name());
  if (scores.rank() > 4 && (scores.back().number() == 1 || scores[scores.rank() - 2].number() == 1))
    return no("the mask meets the scores where an axis of one element stands among queries and keys", value->name());
  const Shape shape = value->constant() ? Shape::of(value->constant()->dims()) : value->shape();
  const bool joined = scores.rank() == 3;
  if (!joined && scores[scores.rank() - 3].number() != heads_)
    return no("the mask meets the scores with other heads", value->name());
  // Keys need no look: scores of more keys than there are values multiply with none, and those of one key that a mask
  // repeats are repeated by the kernel.
  if (*rank >= 2) {
    const Dim &rows = shape[*rank - 2], &wanted = scores[scores.rank() - 2];
    const bool many = wanted.known() && wanted.number() != 1;
    more_rows_ = more_rows_ || !(rows.number() == 1 || rows == wanted || many);
  }
  if (*rank < 3) return yes();
  const Dim& third = shape[*rank - 3];
  if (!joined && !(third.number() == 1) && !(third.number() == heads_) && (third.known() || heads_ == 1))
    return no("the mask may have more heads than the scores", value->name());
  if (*rank == 3 && (!joined || third.number() == 1)) return yes();
  if (joined || scores.rank() == 4) per_batch_ = per_batch_ || joined || shape[0].number() != 1;
  if (scores.rank() == 4) return yes();
  return joined ? split_heads(value, shape, scores) : join_windows(value, shape, scores);
}

/// [batch * heads, queries, keys]
Verdict MaskAligner::split_heads(Value*& value, const Shape& shape, const Shape& scores) {
  if (heads_ == 1) {
    value = &build_.op("Unsqueeze", {value, &ints({1})});
    return yes();
  }
  if (!(shape[0] == scores[0]) && !(shape[0].known() && shape[0].value() % heads_ == 0))
    return no("the mask may have one batch for all heads", value->name());
  if (shape[1].known() && shape[2].known()) {
    value = &build_.op("Reshape", {value, &ints({-1, heads_, shape[1].value(), shape[2].value()})});
    return yes();
  }
  Value& extents = build_.op("Gather", {&build_.op("Shape", {value}), &ints({1, 2})});
  Value& target = build_.op("Concat", {&ints({-1, heads_}), &extents}, {{"axis", std::int64_t{0}}});
  value = &build_.op("Reshape", {value, &target});
  return yes();
}

/// [images, windows, heads, queries, keys] (Swin): one mask for the windows of every image.
Verdict MaskAligner::join_windows(Value*& value, const Shape& shape, const Shape& scores) {
  const std::size_t missing = scores.rank() - shape.rank();
  if (scores.rank() != 5 || !shape.known()) return no("the mask of windows needs known extents", value->name());
  const auto dim = [&](std::size_t i) { return i < missing ? 1 : shape[i - missing].value(); };
  if (dim(0) != 1) return no("the mask is not the same for all images", value->name());
  if (dim(1) != 1 && scores[1].number() != dim(1)) return no("the mask may have more windows", value->name());
  if (dim(1) > 1) (scores[0].number() == 1 ? per_batch_ : windows_) = true;
  value = &build_.op("Reshape", {value, &ints({dim(1), dim(2), dim(3), dim(4)})});
  return yes();
}

}  // namespace modelflow::passes
