// BatchNormalization folded into the convolution or product beside it, else written as scale and shift.
#include "passes/graph/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "passes/clean/clean.h"
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/graph/linear_op.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

Verdict infers(const Match& m) { return inference_form(m.node("bn")); }

Pattern batch_norm(Pattern x) {
  return op("BatchNormalization",
            {std::move(x), constant("gamma"), constant("beta"), constant("mean"), constant("var")}, "bn");
}

bool usable(std::size_t found, std::size_t wanted) { return found == wanted || found == 1; }

Verdict fits_after(const Match& m) {
  std::string why;
  const std::optional<LinearOp> linear = LinearOp::of(m.node("linear"), &why);
  if (!linear) return no(why);
  if (!linear->channels_second()) return no("the channels of the product are not on axis 1");
  if (static_cast<std::size_t>(m.constant("gamma").elements()) != linear->channels_out())
    return no("one scale per output channel is needed");
  return m["b"] && !linear->over_outputs(m.constant("b")) ? no("the bias is not per channel", m["b"]->name()) : yes();
}

/// Rows that a Reshape between the product and the normalization keeps: of [rows, channels] it takes the last axis.
Verdict fits_behind_rows(const Match& m) {
  std::string why;
  const std::optional<LinearOp> linear = LinearOp::of(m.node("linear"), &why);
  if (!linear) return no(why);
  const Dim channels(static_cast<std::int64_t>(linear->channels_out()));
  const Value &product = *m.node("rows").input(0), &rows = *m.node("rows").output();
  if (rank_of(&rows) != 2 || !(rows.shape()[1] == channels) || !rank_of(&product) ||
      !(product.shape().back() == channels))
    return no("the channels of the product are not on axis 1", rows.name());
  return m.constant("gamma").elements() == channels.number() ? yes() : no("one scale per output channel is needed");
}

/// The axis of x that the Transpose in front of the normalization makes channels; none where the one behind it does not
/// put all axes back.
std::optional<std::size_t> channels_between(const Match& m) {
  const Ints front = m.node("front").attrs.ints("perm"), back = m.node("back").attrs.ints("perm");
  if (front.size() < 2 || back.size() != front.size()) return {};
  for (std::size_t i = 0; i < front.size(); ++i) {
    const auto axis = static_cast<std::size_t>(back[i]);  // a negative one is far behind the last
    if (axis >= front.size() || front[axis] != static_cast<std::int64_t>(i)) return {};
  }
  return static_cast<std::size_t>(front[1]);
}

Verdict fits_between(const Match& m) {
  if (!channels_between(m)) return no("the Transposes do not undo each other", m.node("back").label());
  return m["x"]->dtype() == m.constant("gamma").dtype() ? yes() : no("the scale has another type", m["gamma"]->name());
}

Verdict fits_before(const Match& m) {
  std::string why;
  const std::optional<LinearOp> linear = LinearOp::of(m.node("linear"), &why);
  if (!linear) return no(why);
  if (!linear->channels_second()) return no("the channels of the product are not on axis 1");
  if (!usable(static_cast<std::size_t>(m.constant("gamma").elements()), linear->channels_in()))
    return no("one scale per input channel is needed");
  const Affine affine = affine_of(m.node("bn"));
  const bool shifts = std::any_of(affine.shift.begin(), affine.shift.end(), [](double s) { return s != 0; });
  return shifts && !linear->shift_safe() ? no("the shift would leak into the padded border") : yes();
}

std::vector<Value*> into_previous(const Match& m, Build& build) {
  LinearOp linear = *LinearOp::of(m.node("linear"));
  if (m["b"]) linear.shift_outputs(*linear.over_outputs(m.constant("b")));
  const Affine affine = affine_of(m.node("bn"));
  linear.scale_outputs(affine.scale);
  linear.shift_outputs(affine.shift);
  return linear.build(build, m["x"]);
}

std::vector<Value*> into_next(const Match& m, Build& build) {
  LinearOp linear = *LinearOp::of(m.node("linear"));
  const Affine affine = affine_of(m.node("bn"));
  if (std::any_of(affine.shift.begin(), affine.shift.end(), [](double s) { return s != 0; }))
    linear.shift_inputs(affine.shift);  // before the weights are scaled: the shift is added to the scaled x
  linear.scale_inputs(affine.scale);
  return linear.build(build, m["x"]);
}

std::vector<Value*> into_rows(const Match& m, Build& build) {
  const std::vector<Value*> y = into_previous(m, build);
  if (y.empty()) return {};
  return {&build.op("Reshape", {y[0], m["target"]}, m.node("rows").attrs)};
}

std::vector<Value*> between(const Match& m, Build& build) {
  const Affine affine = affine_of(m.node("bn"));
  Dims dims(m.node("front").attrs.ints("perm").size() - *channels_between(m), 1);
  dims[0] = m.constant("gamma").elements();
  const DType dtype = m["x"]->dtype();
  std::optional<Tensor> scale = from_doubles(dtype, dims, affine.scale),
                        shift = from_doubles(dtype, dims, affine.shift);
  if (!scale || !shift) return build.refuse(no("folding would overflow or lose digits", m["gamma"]->name()));
  Value& scaled = build.op("Mul", {m["x"], &build.constant(*std::move(scale), m["gamma"]->name())});
  return {&build.op("Add", {&scaled, &build.constant(*std::move(shift), m["beta"]->name())})};
}

Pattern linear(Pattern x) {
  return open(op_any({"Conv", "ConvTranspose", "Gemm", "MatMul"}, {std::move(x)}, "linear"));
}

}  // namespace

Pass fold_batch_norm() {
  const Pattern x = any("x");
  return rewrite(
      "fold-batch-norm", "Folds BatchNormalization into the weights of the linear op before or after it.",
      {
          {.name = "batch-norm-into-previous",
           .doc = "BatchNormalization(Conv | ConvTranspose | Gemm | MatMul) -> the op with scaled weights and bias",
           .from = batch_norm(linear(x)),
           .when = {infers, fits_after},
           .into = into_previous},
          {.name = "batch-norm-into-biased-matmul",
           .doc = "BatchNormalization(MatMul + bias) -> MatMul + bias with scaled constants",
           .from = batch_norm(open(op("MatMul", {x}, "linear")) + constant("b")),
           .when = {infers, fits_after},
           .into = into_previous},
          {.name = "batch-norm-behind-rows",
           .doc =
               "BatchNormalization(Reshape(MatMul)) on rows, as LeViT writes it -> Reshape(MatMul with scaled weights)",
           .from = batch_norm(open(op("Reshape", {open(op("MatMul", {x}, "linear")), any("target")}, "rows"))),
           .when = {infers, fits_behind_rows},
           .into = into_rows},
          {.name = "batch-norm-into-next",
           .doc =
               "Conv | Gemm | MatMul of BatchNormalization -> the op with scaled weights (shift only without padding)",
           .from = linear(batch_norm(x)),
           .when = {infers, fits_before},
           .into = into_next},
          {.name = "batch-norm-between-transposes",
           .doc = "Transpose(BatchNormalization(Transpose(x))) on rows, as PatchTST writes it -> x * scale + shift",
           .from = op("Transpose", {batch_norm(op("Transpose", {x}, "front"))}, "back"),
           .when = {infers, fits_between},
           .into = between},
      });
}

}  // namespace modelflow::passes
