// Layer and RMS normalization as exporters write them, with or without the op of newer opsets -> modelflow.LayerNorm.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/channels_last.h"
#include "passes/graph/facts.h"
#include "passes/normalize/norms.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

constexpr int kOldest = 11;  // negative axes

/// The trailing axes, or the channels of [N,C,...].
std::optional<Axes> normalized(const Match& m) {
  const std::optional<Ints> list = mean_axes(m);
  const Shape& x = m.value("x").shape();
  if (!list || !x.has_rank()) return {};
  Axes axes{x.rank(), static_cast<std::size_t>(list->front()), {}};
  const bool channels = *list == Ints{1} && x.rank() > 2;
  if (axes.first + list->size() != x.rank() && !channels) return {};
  for (const std::int64_t axis : *list) {
    const Dim& dim = x[static_cast<std::size_t>(axis)];
    if (!dim.known() || dim.value() == 0) return {};  // nothing has no mean, but runtimes refuse it only as an op
    axes.dims.push_back(dim.value());
  }
  return axes;
}

Verdict is_float32(const Match& m) {
  const Value& x = m.value("x");
  return x.dtype() == DType::f32 ? yes() : no("it is not float32", x.name());
}

Verdict known_axes(const Match& m) {
  if (!mean_axes(m)) return no("the means are taken over different or unknown axes", m.value("x").name());
  return normalized(m) ? yes()
                       : no("the axes are neither the last ones nor channels, or have unknown extents or none",
                            m.value("x").name());
}

struct Norm {
  Axes axes;
  float epsilon;
  Value* scale;
  Value* bias;  ///< null: RMS
};

Value& make(Build& build, Value& x, const Norm& norm) {
  const bool moved = norm.axes.first + norm.axes.dims.size() != norm.axes.rank;
  Value& from = moved ? build.op("Transpose", {&x}, {{"perm", to_last(norm.axes.rank)}}) : x;
  std::vector<Value*> inputs = {&from, norm.scale};
  if (norm.bias) inputs.push_back(norm.bias);
  Value& y = build.op("modelflow.LayerNorm", std::move(inputs),
                      {{"axis", -static_cast<std::int64_t>(norm.axes.dims.size())},
                       {"epsilon", norm.epsilon},
                       {"rms", std::int64_t{norm.bias ? 0 : 1}}});
  return moved ? build.op("Transpose", {&y}, {{"perm", to_first(norm.axes.rank)}}) : y;
}

/// From means: gamma and beta where the pattern has them.
std::vector<Value*> from_means(const Match& m, Build& build, bool rms) {
  if (build.opset() < kOldest) return build.refuse(no("LayerNorm is said in ops of opset 11 and later"));
  Norm norm{*normalized(m), static_cast<float>(*const_number(&m.value("epsilon"))), nullptr, nullptr};
  Value *gamma = m["gamma"], *beta = m["beta"];
  norm.scale = gamma ? over_axes(build, *gamma, norm.axes) : &filled(build, norm.axes, 1);
  if (!norm.scale) return build.refuse(no("the scale has another shape than what is normalized", gamma->name()));
  if (!rms) norm.bias = beta ? over_axes(build, *beta, norm.axes) : &filled(build, norm.axes, 0);
  if (!rms && !norm.bias) return build.refuse(no("the bias has another shape than what is normalized", beta->name()));
  return {&make(build, m.value("x"), norm)};
}

/// The op that newer opsets have.
std::vector<Value*> from_op(const Match& m, Build& build) {
  const Node& node = m.node("norm");
  const bool rms = node.is("RMSNormalization");
  const Shape &x = m.value("x").shape(), &s = m.value("gamma").shape();
  const auto rank = static_cast<std::int64_t>(x.has_rank() ? x.rank() : 0);
  std::int64_t axis = node.attrs.integer("axis", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return build.refuse(no("its rank is unknown", m.value("x").name()));
  if (node.attrs.integer("stash_type", 1) != 1) return build.refuse(no("it does not compute in float32"));
  Norm norm{{x.rank(), static_cast<std::size_t>(axis), {}}, node.attrs.number("epsilon", 1e-5F), nullptr, nullptr};
  const bool same_rank = s.has_rank() && static_cast<std::int64_t>(s.rank()) == rank - axis;
  for (std::size_t i = norm.axes.first; i < x.rank(); ++i) {
    const bool told = same_rank && s[i - norm.axes.first] != Dim(1);  // one entry is repeated
    const Dim& dim = x[i].known() || !told ? x[i] : s[i - norm.axes.first];
    if (!dim.known()) return build.refuse(no("a normalized axis has an unknown extent", m.value("x").name()));
    norm.axes.dims.push_back(dim.value());
  }
  norm.scale = over_axes(build, m.value("gamma"), norm.axes);
  if (!norm.scale) return build.refuse(no("is of another shape than what is normalized", m.value("gamma").name()));
  Value* beta = m["beta"];
  if (!rms) norm.bias = beta ? over_axes(build, *beta, norm.axes) : &filled(build, norm.axes, 0);
  if (!rms && !norm.bias) return build.refuse(no("is of another shape than what is normalized", beta->name()));
  return {&make(build, m.value("x"), norm)};
}

}  // namespace

std::vector<Rule> layer_norm_rules() {
  const Pattern x = any("x"), gamma = any("gamma"), beta = any("beta");
  const Pattern deviation = x - mean(x);
  const auto [root, inverse] = spreads(deviation);
  const auto [rms_root, rms_inverse] = spreads(x);
  const std::vector<Condition> when = {is_float32, known_axes, small_number};
  const auto layer = [](const Match& m, Build& build) { return from_means(m, build, false); };
  const auto rms = [](const Match& m, Build& build) { return from_means(m, build, true); };
  return {{.name = "layer-norm-of-tensorflow",
           .doc = "x * (rsqrt * gamma) + (beta - mean * rsqrt * gamma) -> LayerNorm",
           .from = tensorflow_norm(x),
           .when = when,
           .into = layer},
          {.name = "layer-norm-from-means",
           .doc = "(x - mean) / sqrt(mean((x - mean)^2) + epsilon), root and quotient in any spelling -> LayerNorm",
           .from = either({deviation / root, deviation * inverse, deviation * (inverse * gamma),
                           (deviation * gamma) / root, (deviation * gamma) * inverse}),
           .when = when,
           .into = layer},
          {.name = "rms-norm-from-mean",
           .doc = "x / sqrt(mean(x^2) + epsilon), root and quotient in any spelling -> LayerNorm (rms)",
           .from = either({x / rms_root, x * rms_inverse, x * (rms_inverse * gamma), (x * gamma) / rms_root,
                           (x * gamma) * rms_inverse}),
           .when = when,
           .into = rms},
          {.name = "layer-norm-op",
           .doc = "LayerNormalization, RMSNormalization -> LayerNorm",
           .from = op_any({"LayerNormalization", "RMSNormalization"}, {x, gamma, optional(beta)}, "norm"),
           .when = {is_float32},
           .into = from_op}};
}

}  // namespace modelflow::passes
