// The steps between product and softmax as one scale, a triangle, flags and numbers. Every step keeps what it means: a
// number that is added is added, one that stands in place of a score does so, and in their order.
#include "modelflow/modelflow.h"
#include "passes/fuse/attention_align.h"
#include "passes/fuse/attention_scores.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

using Kind = ScoreStep::Kind;
using Replaces = Masking::Replaces;

class MaskBuilder {
 public:
  MaskBuilder(std::int64_t heads, Node& before, Context& context, Masking& masking)
      : build_(before.graph(), before, context), aligner_(heads, build_), masking_(masking) {}

  Verdict take(const ScoreStep& step) {
    switch (step.kind) {
      case Kind::scale:
        return scale(step.number);
      case Kind::tanh:
        if (masking_.flags || masking_.numbers || masking_.causal.on || masking_.grid_rows || masking_.softcap != 0)
          return no("masked scores are capped");
        masking_.softcap = 1;
        return yes();
      case Kind::add:
        return add(step);
      case Kind::grid:
        return add_grid(*step.value, *step.columns, step.scores);
      case Kind::keep:
      case Kind::drop:
        return choose(step);
    }
    return no("unknown step");
  }

  Verdict finish() {
    if (masking_.softcap != 0) masking_.scale *= masking_.softcap;  // c * tanh(s) = c * tanh(s c / c)
    if (Verdict v = place_triangle(); !v) return v;
    for (Value** mask : {&masking_.numbers, &masking_.flags}) {
      if (!*mask) continue;
      const DType wanted = mask == &masking_.flags ? DType::boolean : DType::f32;
      if ((*mask)->dtype() != wanted) return no("the mask is not float32", (*mask)->name());
      const std::optional<std::size_t> rank = rank_of(*mask);
      if (!rank || *rank > 4) return no("the mask has no rank up to 4", (*mask)->name());
      if (*rank < 2) *mask = &op("Reshape", {*mask, &build_.constant(tensor_of({1, -1}), "shape")});
    }
    masking_.windows = aligner_.windows();
    if (masking_.windows && aligner_.more_rows())
      return no("a mask beside one of windows may have more rows than there are queries");
    if (masking_.windows && (aligner_.per_batch() || (masking_.numbers && masking_.flags)))
      return no("one mask is for windows, another for the batch");
    return yes();
  }

 private:
  Value& op(const char* type, std::vector<Value*> inputs) { return build_.op(type, std::move(inputs)); }
  Value& number(float value) { return build_.constant(Tensor::scalar(value), "number"); }
  bool replacing() const { return masking_.replaces != Replaces::none; }

  Verdict scale(float factor) {
    if (factor == 0) return no("the scores are multiplied by 0");
    if (masking_.grid_rows) return no("what positions in a grid add is scaled");
    (masking_.softcap != 0 ? masking_.softcap : masking_.scale) *= factor;
    masking_.flag_true *= factor;
    masking_.flag_false *= factor;
    masking_.causal.number *= factor;
    if (masking_.causal.on && !(masking_.causal.number < 0)) return no("the scale turns a mask round");
    if (masking_.numbers) masking_.numbers = &op("Mul", {masking_.numbers, &number(factor)});
    return yes();
  }

  /// Numbers of the rows and columns of a grid, in front of all masks: [.., queries of a grid, rows, 1] and the like.
  Verdict add_grid(Value& rows, Value& columns, const Shape& scores) {
    if (masking_.grid_rows || masking_.flags || masking_.causal.on) return no("a mask acts before positions in a grid");
    const std::optional<std::int64_t> queries = scores[scores.rank() - 2].number();
    const auto whole = [&](const Value& value) {  // of all batches, heads and queries
      return value.shape().elements() * scores.back() == scores.elements() * grid_side(value);
    };
    if (!queries || !whole(rows) || !whole(columns))
      return no("positions in a grid are repeated for some batches, heads or queries", rows.name());
    if (rows.dtype() != DType::f32 || columns.dtype() != DType::f32) return no("positions in a grid are not float32");
    const auto flat = [&](Value& value) {
      const Ints target = {-1, aligner_.heads(), *queries, grid_side(value).value()};
      return &op("Reshape", {&value, &build_.constant(tensor_of(target), "shape")});
    };
    masking_.grid_rows = flat(rows);
    masking_.grid_columns = flat(columns);
    return yes();
  }

  /// The extent of the last two that is not 1.
  static Dim grid_side(const Value& value) {
    const Shape& shape = value.shape();
    return shape.back() * shape[shape.rank() - 2];
  }

  /// The same as a mask: Reshape(rows + columns).
  static std::optional<GridSum> grid_of(const Value& value, const Shape& scores) {
    const Node* view = value.producer();
    const Node* sum = view && view->is("Reshape") ? view->input(0)->producer() : nullptr;
    if (!sum || !sum->is("Add") || !(value.shape() == scores)) return {};
    const std::optional<GridSum> found = grid_sum(*sum->input(0), *sum->input(1));
    return found && scores.back().number() == found->high * found->wide ? found : std::nullopt;
  }

  Verdict add(const ScoreStep& step) {
    if (const std::optional<GridSum> grid = grid_of(*step.value, step.scores); grid && !masking_.numbers)
      if (Verdict v = add_grid(*grid->rows, *grid->columns, step.scores)) return v;
    if (spans(*step.value, step.scores))
      if (const std::optional<float> low = causal_bias(*step.value)) return hide(*low, true);
    Value* value = &lean(*step.value, &step.scores);
    if (const Node* node = choice_of_numbers(*value))
      return add_flags(*node->input(0), *scalar(node->input(1)), *scalar(node->input(2)), step.scores);
    if (Verdict v = aligner_.align(value, step.scores); !v) return v;
    return add_numbers(*value);
  }

  /// Where(condition, number, number) of the extents of the condition; null for anything else.
  static const Node* choice_of_numbers(const Value& value) {
    const Node* node = value.producer();
    if (!node || !node->is("Where") || !scalar(node->input(1)) || !scalar(node->input(2))) return nullptr;
    return rank_of(node->input(0)) == rank_of(&value) ? node : nullptr;
  }

  Verdict add_numbers(Value& value) {
    join_added_flags();
    if (masking_.flags && masking_.numbers && !masking_.numbers_last)
      return no("numbers are added in front of a choice and behind it", value.name());
    masking_.numbers_last = masking_.flags != nullptr;
    masking_.numbers = masking_.numbers ? &op("Add", {masking_.numbers, &value}) : &value;
    behind_triangle_ = masking_.causal.on;
    return yes();
  }

  /// Flags that add one of two numbers become these numbers.
  void join_added_flags() {
    if (!masking_.flags || replacing()) return;
    Value& added = op("Where", {masking_.flags, &number(masking_.flag_true), &number(masking_.flag_false)});
    masking_.numbers = masking_.numbers ? &op("Add", {masking_.numbers, &added}) : &added;
    masking_.flags = nullptr;
    masking_.flag_true = masking_.flag_false = 0;
  }

  Verdict add_flags(Value& condition, float on, float off, const Shape& scores) {
    Value* value = &lean(condition, &scores);
    if (Verdict v = aligner_.align(value, scores); !v) return v;
    if (masking_.flags || masking_.numbers) return add_numbers(op("Where", {value, &number(on), &number(off)}));
    masking_.flags = value;
    masking_.flag_true = on;
    masking_.flag_false = off;
    behind_triangle_ = masking_.causal.on;
    return yes();
  }

  /// A number in place of some scores.
  Verdict choose(const ScoreStep& step) {
    const bool keep = step.kind == Kind::keep;
    if (spans(*step.value, step.scores) && (keep ? is_causal(*step.value) : is_later(*step.value)))
      return hide(step.number, false);
    Value* rest = keep ? without_causal(*step.value, step.scores) : nullptr;
    if (!rest) return replace(step, *step.value);
    // The same number in place of the same scores, one after the other: their order does not matter.
    const bool behind = behind_triangle_;
    if (Verdict v = hide(step.number, false); !v) return v;
    if (Verdict v = replace(step, *rest); !v) return v;
    behind_triangle_ = behind;
    return yes();
  }

  Verdict replace(const ScoreStep& step, Value& condition) {
    Value* flags = &lean(condition, &step.scores);
    if (Verdict v = aligner_.align(flags, step.scores); !v) return v;
    join_added_flags();
    const bool keep = step.kind == Kind::keep;
    const Replaces replaces = keep ? Replaces::by_false : Replaces::by_true;
    float& low = keep ? masking_.flag_false : masking_.flag_true;
    if (masking_.flags) {
      if (masking_.numbers_last || masking_.replaces != replaces || low != step.number)
        return no("two choices put unlike numbers in place of scores", flags->name());
      flags = &op(keep ? "And" : "Or", {masking_.flags, flags});
    }
    masking_.flags = flags;
    masking_.replaces = replaces;
    low = step.number;
    behind_triangle_ = masking_.causal.on;
    return yes();
  }

  /// A triangle of all queries by all keys. One of other extents, of one row or column, would be repeated.
  static bool spans(const Value& triangle, const Shape& scores) {
    const Shape shape = triangle.constant() ? Shape::of(triangle.constant()->dims()) : triangle.shape();
    if (!shape.has_rank() || shape.rank() < 2 || shape.rank() > scores.rank()) return false;
    for (std::size_t i = 1; i <= shape.rank(); ++i) {
      const Dim& dim = shape[shape.rank() - i];
      const bool own = dim == scores[scores.rank() - i];
      if (i <= 2 ? !own : !own && !(dim.number() == 1)) return false;
    }
    return true;
  }

  /// What else is asked for in allowed = causal and rest; null when there is no causal part.
  static Value* without_causal(const Value& allowed, const Shape& scores) {
    const Node* node = allowed.producer();
    if (!node || !node->is("And")) return nullptr;
    for (const std::size_t i : {0, 1})
      if (spans(*node->input(i), scores) && is_causal(*node->input(i))) return node->input(1 - i);
    return nullptr;
  }

  Verdict hide(float low, bool adds) {
    if (masking_.causal.on) return no("there are two causal masks");
    masking_.causal = {true, low, adds, false};
    front_of_triangle_ = masking_.flags || masking_.numbers;
    return yes();
  }

  /// The triangle acts in front of all other masks or behind them.
  Verdict place_triangle() {
    Masking::Causal& causal = masking_.causal;
    if (!causal.on) return yes();
    if (aligner_.more_rows()) return no("a mask beside a causal one may have more rows than there are queries");
    const bool sum = causal.adds && !replacing();  // in any order
    if (!sum && front_of_triangle_ && behind_triangle_) return no("a causal mask stands between two others");
    causal.first = !sum && behind_triangle_;
    return yes();
  }

  Build build_;
  MaskAligner aligner_;
  Masking& masking_;
  bool front_of_triangle_ = false, behind_triangle_ = false;  ///< there are other masks
};

}  // namespace

Verdict make_mask(const Core& core, std::int64_t heads, Node& before, Context& context, Masking& masking) {
  MaskBuilder builder(heads, before, context, masking);
  for (const ScoreStep& step : core.steps)
    if (Verdict v = builder.take(step); !v) return v;
  return builder.finish();
}

}  // namespace modelflow::passes
