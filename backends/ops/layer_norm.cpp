// The fused op LayerNorm: layer or RMS normalization, of a residual sum or with a residual added to it.
#include <algorithm>
#include <string>

#include "backends/call_attrs.h"
#include "backends/ops/broadcast.h"
#include "backends/ops/layer_norm_text.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

struct LayerNormAttrs {
  explicit LayerNormAttrs(const CallAttrs& attrs)
      : rms(attrs.flag("rms")),
        residual(attrs.text("residual") != "none"),
        after(attrs.text("residual") == "after"),
        keep_sum(attrs.flag("keep_sum")),
        axes(-static_cast<std::size_t>(std::min<std::int64_t>(attrs.integer("axis"), 0))) {}
  bool rms, residual, after, keep_sum;
  std::size_t axes;  ///< how many trailing axes are normalized
  std::size_t inputs() const { return 2 + (rms ? 0 : 1) + (residual ? 1 : 0); }
};

std::vector<std::string> inputs(const Call& call) {
  const LayerNormAttrs norm(call);
  std::vector<std::string> names = {"x", "scale"};
  if (!norm.rms) names.emplace_back("bias");
  if (norm.residual) names.emplace_back("residual");
  return names;
}

std::string body(const Call& call, int opset) {
  const LayerNormAttrs norm(call);
  const float epsilon = CallAttrs(call).number("epsilon");
  std::string text = "{\n", t = "x";
  if (norm.after)
    return text + layer_norm_text(norm.rms, norm.axes, t, epsilon, opset, "normalized") +
           "y = Add (normalized, residual)\n}";
  if (norm.residual) {
    t = norm.keep_sum ? "y1" : "sum";
    text += t + " = Add (x, residual)\n";
  }
  return text + layer_norm_text(norm.rms, norm.axes, t, epsilon, opset) + "}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  return layer_norm_attributes(LayerNormAttrs(call).rms, opset);
}

/// The operand has the last `axes` extents of x.
Verdict fits(const Operand& operand, const Shape& x, std::size_t axes) {
  if (!operand.shape.has_rank()) return no("its rank is unknown", operand.name);
  if (operand.shape.rank() != axes) return no("is not of rank " + std::to_string(axes), operand.name);
  for (std::size_t i = 0; x.has_rank() && i < axes; ++i) {
    const Dim &a = operand.shape[i], &b = x[x.rank() - axes + i];
    if (a.known() && b.known() && !(a == b)) return no("is " + a.str() + " where x is " + b.str(), operand.name);
  }
  return yes();
}

/// What x and the residual broadcast to; unknown where one of them is.
Verdict read_sum(const Operand& x, const Operand& residual, Shape& sum) {
  const Shape &a = x.shape, &b = residual.shape;
  sum = Shape();
  if (!a.has_rank() || !b.has_rank()) return yes();
  std::vector<Dim> dims(std::max(a.rank(), b.rank()));
  const auto at = [&](const Shape& shape, std::size_t i) {
    const std::size_t missing = dims.size() - shape.rank();
    return i < missing ? Dim(1) : shape[i - missing];
  };
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::optional<Dim> dim = broadcast(at(a, i), at(b, i));
    if (!dim) return no("is " + b.str() + " and does not broadcast with x", residual.name);
    dims[i] = *dim;
  }
  sum = Shape(std::move(dims));
  return yes();
}

Verdict infer(Call& call) {
  const LayerNormAttrs norm(call);
  if (norm.axes == 0) return no("axis is not negative");
  if (Verdict v = check_word(call, "residual", {"none", "before", "after"}); !v) return v;
  if (norm.keep_sum && (!norm.residual || norm.after)) return no("keep_sum needs a residual in front");
  if (call.inputs.size() != norm.inputs())
    return no("the attributes ask for " + std::to_string(norm.inputs()) + " inputs");
  Shape x = call.in(0).shape;
  const Operand& last = call.inputs.back();
  if (norm.after && x.has_rank() && last.shape.has_rank()) {
    if (Verdict v = fits(last, x, x.rank()); !v) return v;
  } else if (norm.residual && !norm.after) {
    if (Verdict v = read_sum(call.in(0), last, x); !v) return v;
  }
  if (x.has_rank() && x.rank() < norm.axes) return no("has fewer axes than are normalized", call.in(0).name);
  for (std::size_t i = 1; i < (norm.rms ? 2U : 3U); ++i) {
    if (Verdict v = fits(call.in(i), x, norm.axes); !v) return v;
  }
  call.outputs.resize(norm.keep_sum ? 2 : 1);
  for (Operand& output : call.outputs) {
    output.dtype = call.in(0).dtype;
    output.shape = x;
  }
  return yes();
}

struct Sample {
  Dims x;
  int axes = 1;
  bool rms = false, residual = false, keep_sum = false, after = false;
  Dims other = {};  ///< of the residual when it is not of the shape of x
};

void add(Samples& all, const Sample& sample) {
  const Dims& widest = sample.other.size() > sample.x.size() ? sample.other : sample.x;
  const Dims scale(widest.end() - sample.axes, widest.end());
  Attrs attrs{{"axis", std::int64_t{-sample.axes}}, {"epsilon", 1e-5f}};
  attrs.set("rms", sample.rms ? 1 : 0).set("residual", sample.after ? "after" : sample.residual ? "before" : "none");
  attrs.set("keep_sum", sample.keep_sum ? 1 : 0);
  Call call{"LayerNorm", std::move(attrs), {all.operand("x", sample.x), all.operand("scale", scale, 4)}, {}};
  if (!sample.rms) call.inputs.push_back(all.operand("bias", scale, 4));
  if (sample.residual || sample.after)
    call.inputs.push_back(all.operand("residual", sample.other.empty() ? sample.x : sample.other));
  if (!infer(call)) throw Error(ErrorKind::internal, "a sample of LayerNorm contradicts itself");
  call.outputs[0].name = "y";
  if (sample.keep_sum) call.outputs[1].name = "sum";
  all.calls.push_back(std::move(call));
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    for (const bool rms : {false, true}) {
      add(all, {.x = {1, 197, 768}, .rms = rms});
      add(all, {.x = {2, 3, 37}, .rms = rms});
      add(all, {.x = {7, 5}, .rms = rms});
      add(all, {.x = {1, 1, 384}, .rms = rms, .residual = true});
      add(all, {.x = {3, 33, 1024}, .rms = rms, .residual = true, .keep_sum = true});
      add(all, {.x = {2, 3, 4, 21}, .axes = 2, .rms = rms});
      add(all, {.x = {2, 13, 40}, .rms = rms, .residual = true, .other = {1, 13, 40}});
      add(all, {.x = {2, 1, 3, 18}, .rms = rms, .residual = true, .keep_sum = true, .other = {5, 1, 18}});
      add(all, {.x = {70}, .rms = rms, .residual = true, .other = {3, 9, 70}});
      add(all, {.x = {1, 4, 6}, .axes = 2, .rms = rms, .residual = true, .other = {3, 1, 6}});
      add(all, {.x = {2, 0, 16}, .rms = rms, .residual = true, .keep_sum = true});
      add(all, {.x = {2, 5, 96}, .rms = rms, .after = true});
    }
    add(all, {.x = {4096, 64}});
    add(all, {.x = {150}});
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp layer_norm_op = {
    .kind = "LayerNorm",
    .doc =
        "Layer or RMS normalization over the trailing axes, of a residual sum too, which is a second output, or with a "
        "residual of the shape of x added after it.",
    .names = 3,
    .min_inputs = 2,
    .max_inputs = 4,
    .max_outputs = 2,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"axis", std::int64_t{-1}},
                 {"epsilon", 1e-5f},
                 {"rms", std::int64_t{0}},
                 {"residual", std::string("none")},
                 {"keep_sum", std::int64_t{0}}},
    .in_place = true,
    .family = Family::layer_norm,
};

}  // namespace modelflow::ops
