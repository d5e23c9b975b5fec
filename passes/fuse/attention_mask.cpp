// The steps between product and softmax as one scale, one flag and one mask. What a step does to the scores it does to
// the mask alone: scores + mask then end where the steps would have led. Flags that say which of two numbers to add
// stay flags as long as nothing else joins them.
#include <cmath>
#include <limits>

#include "modelflow/modelflow.h"
#include "passes/facts.h"
#include "passes/fuse/attention_scores.h"
#include "passes/fuse/epilogue.h"

namespace modelflow::passes {
namespace {

using Kind = ScoreStep::Kind;

class MaskBuilder {
 public:
  MaskBuilder(std::int64_t heads, Node& before, Context& context, Masking& masking)
      : heads_(heads), build_(before.graph(), before, context), masking_(masking) {}

  Verdict take(const ScoreStep& step) {
    switch (step.kind) {
      case Kind::scale:
        if (step.number == 0) return no("the scores are multiplied by 0");
        (masking_.softcap != 0 ? masking_.softcap : masking_.scale) *= step.number;
        if (numbers()) mask_ = &op("Mul", {mask_, &number(step.number)});
        return yes();
      case Kind::tanh:
        if (mask_ || masking_.causal || masking_.softcap != 0) return no("masked scores are capped");
        masking_.softcap = 1;
        return yes();
      case Kind::add:
        return add(step);
      case Kind::keep:
      case Kind::drop:
        return choose(step);
    }
    return no("unknown step");
  }

  Verdict finish() {
    if (masking_.softcap != 0) masking_.scale *= masking_.softcap;  // c * tanh(s) = c * tanh(s c / c)
    if (!mask_) return yes();
    if (mask_->dtype() != DType::f32 && mask_->dtype() != DType::boolean)
      return no("the mask is not float32", mask_->name());
    const std::optional<std::size_t> rank = rank_of(mask_);
    if (!rank || *rank > 4) return no("the mask has no rank up to 4", mask_->name());
    if (*rank < 2) mask_ = &op("Reshape", {mask_, &ints({1, -1})});
    if (windows_ && per_batch_) return no("one mask is for windows, another for the batch", mask_->name());
    masking_.mask = mask_;
    masking_.windows = windows_;
    return yes();
  }

 private:
  Value& op(const char* type, std::vector<Value*> inputs) { return build_.op(type, std::move(inputs)); }
  Value& number(float value) { return build_.constant(Tensor::scalar(value), "number"); }
  Value& ints(const Ints& list) { return build_.constant(tensor_of(list), "shape"); }

  /// A triangle over all queries and keys: the only row or column of another would be repeated.
  static bool spans(const Value& triangle, const Shape& scores) {
    if (rank_of(&triangle).value_or(0) < 2) return false;
    for (std::size_t i = 1; i <= 2; ++i) {
      const Dim& dim = triangle.shape()[triangle.shape().rank() - i];
      if (dim.number() == 1 && !(scores[scores.rank() - i].number() == 1)) return false;
    }
    return true;
  }

  /// What is combined with scores of this shape, brought to [batch, heads, queries, keys].
  Verdict aligned(Value*& value, const Shape& scores) {
    const std::optional<std::size_t> rank = rank_of(value);
    if (!rank || *rank > scores.rank()) return no("the mask would raise the rank of the scores", value->name());
    const Shape& shape = value->constant() ? Shape::of(value->constant()->dims()) : value->shape();
    for (std::size_t i = 0; i < *rank; ++i) {
      const Dim &dim = shape[i], &wanted = scores[scores.rank() - *rank + i];
      if (!(dim.number() == 1) && !(dim == wanted) && wanted.number() == 1)
        return no("the mask would enlarge the scores", value->name());
    }
    const bool joined = scores.rank() == 3;
    if (!joined && scores[scores.rank() - 3].number() != heads_)
      return no("the mask meets the scores with other heads", value->name());
    if (*rank < 3 || (joined && shape[0].number() == 1) || (!joined && *rank == 3)) return yes();
    if (joined || scores.rank() == 4) per_batch_ = per_batch_ || joined || shape[0].number() != 1;
    if (scores.rank() == 4) return yes();
    return joined ? split_heads(value, shape) : join_windows(value, shape, scores);
  }

  /// [batch * heads, queries, keys]
  Verdict split_heads(Value*& value, const Shape& shape) {
    if (heads_ == 1) {
      value = &op("Unsqueeze", {value, &ints({1})});
      return yes();
    }
    if (shape[1].known() && shape[2].known()) {
      value = &op("Reshape", {value, &ints({-1, heads_, shape[1].value(), shape[2].value()})});
      return yes();
    }
    Value& extents = op("Gather", {&op("Shape", {value}), &ints({1, 2})});
    Value& target = build_.op("Concat", {&ints({-1, heads_}), &extents}, {{"axis", std::int64_t{0}}});
    value = &op("Reshape", {value, &target});
    return yes();
  }

  /// [images, windows, heads, queries, keys] (Swin): one mask for the windows of every image.
  Verdict join_windows(Value*& value, const Shape& shape, const Shape& scores) {
    const std::size_t missing = scores.rank() - shape.rank();
    if (scores.rank() != 5 || !shape.known()) return no("the mask of windows needs known extents", value->name());
    const auto dim = [&](std::size_t i) { return i < missing ? 1 : shape[i - missing].value(); };
    if (dim(0) != 1) return no("the mask is not the same for all images", value->name());
    if (dim(1) > 1) (scores[0].number() == 1 ? per_batch_ : windows_) = true;
    value = &op("Reshape", {value, &ints({dim(1), dim(2), dim(3), dim(4)})});
    return yes();
  }

  /// What there is so far as numbers to add; null when there is nothing.
  Value* numbers() {
    if (mask_ && mask_->dtype() == DType::boolean)
      mask_ = &op("Where", {mask_, &number(masking_.mask_true), &number(masking_.mask_false)});
    return mask_;
  }

  Verdict add(const ScoreStep& step) {
    Value* value = step.value;
    if (spans(*value, step.scores) && is_causal_bias(*value)) {
      masking_.causal = true;
      return yes();
    }
    value = &lean(*value);
    if (const Node* node = choice_of_numbers(*value))
      return flags(*node->input(0), *scalar(node->input(1)), *scalar(node->input(2)), step.scores);
    if (Verdict v = aligned(value, step.scores); !v) return v;
    mask_ = numbers() ? &op("Add", {mask_, value}) : value;
    return yes();
  }

  /// Where(condition, number, number) of the extents of the condition; null for anything else.
  static const Node* choice_of_numbers(const Value& value) {
    const Node* node = value.producer();
    if (!node || !node->is("Where") || !scalar(node->input(1)) || !scalar(node->input(2))) return nullptr;
    return rank_of(node->input(0)) == rank_of(&value) ? node : nullptr;
  }

  /// Adds one of two numbers.
  Verdict flags(Value& condition, float on, float off, const Shape& scores) {
    Value* value = &condition;
    if (Verdict v = aligned(value, scores); !v) return v;
    value = &lean(*value);
    if (mask_) {
      mask_ = &op("Add", {numbers(), &op("Where", {value, &number(on), &number(off)})});
      return yes();
    }
    mask_ = value;
    masking_.mask_true = on;
    masking_.mask_false = off;
    return yes();
  }

  Verdict choose(const ScoreStep& step) {
    Value* condition = step.value;
    if (step.kind == Kind::keep) {
      if (spans(*condition, step.scores) && is_causal(*condition)) {
        masking_.causal = true;
        return yes();
      }
      if (Value* rest = without_causal(*condition, step.scores)) {
        masking_.causal = true;
        condition = rest;
      }
    }
    // The lowest number stays itself whatever score is added to it: rows without anything allowed stay uniform.
    const float lowest = std::isinf(step.number) ? step.number : std::numeric_limits<float>::lowest();
    const bool keep = step.kind == Kind::keep;
    if (!mask_) return flags(*condition, keep ? 0 : lowest, keep ? lowest : 0, step.scores);
    if (Verdict v = aligned(condition, step.scores); !v) return v;
    condition = &lean(*condition);
    Value *kept = numbers(), &low = number(lowest);
    mask_ = &op("Where", {condition, keep ? kept : &low, keep ? &low : kept});
    return yes();
  }

  /// What else is asked for in allowed = causal and rest; null when there is no causal part.
  static Value* without_causal(const Value& allowed, const Shape& scores) {
    const Node* node = allowed.producer();
    if (!node || !node->is("And")) return nullptr;
    for (const std::size_t i : {0, 1})
      if (spans(*node->input(i), scores) && is_causal(*node->input(i))) return node->input(1 - i);
    return nullptr;
  }

  std::int64_t heads_;
  Build build_;
  Masking& masking_;
  Value* mask_ = nullptr;
  bool windows_ = false, per_batch_ = false;  ///< some mask differs from window to window, from batch to batch
};

}  // namespace

Verdict make_mask(const Core& core, std::int64_t heads, Node& before, Context& context, Masking& masking) {
  MaskBuilder builder(heads, before, context, masking);
  for (const ScoreStep& step : core.steps)
    if (Verdict v = builder.take(step); !v) return v;
  return builder.finish();
}

}  // namespace modelflow::passes
