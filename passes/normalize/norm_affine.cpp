// What stands behind a normalization, one number per place that it normalizes: part of its scale and bias.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/normalize/norms.h"

namespace modelflow::passes {

using namespace pattern;

std::optional<std::vector<float>> spread(const Tensor& c, const Axes& axes) {
  const auto count = static_cast<std::size_t>(element_count(axes.dims));
  if (c.dtype() != DType::f32 || c.rank() > axes.rank) return {};
  const auto numbers = c.as<float>();
  if (numbers.size() == 1) return std::vector<float>(count, numbers[0]);
  Dims wanted(axes.rank, 1);
  std::ranges::copy(axes.dims, wanted.begin() + static_cast<std::ptrdiff_t>(axes.first));
  const std::size_t missing = axes.rank - c.rank();
  for (std::size_t i = 0; i < axes.rank; ++i) {
    if (wanted[i] != (i < missing ? 1 : c.dims()[i - missing])) return {};
  }
  return std::vector<float>(numbers.begin(), numbers.end());
}

Value* over_axes(Build& build, Value& value, const Axes& axes) {
  if (value.constant()) {
    const auto numbers = spread(*value.constant(), axes);
    if (!numbers) return nullptr;
    if (value.constant()->dims() == axes.dims) return &value;
    return &build.constant(Tensor::of<float>(axes.dims, *numbers), value.name());
  }
  // What is not constant lies along the last axes: nothing here gives it others.
  const bool last = axes.first + axes.dims.size() == axes.rank;
  return last && value.dtype() == DType::f32 && value.shape() == Shape::of(axes.dims) ? &value : nullptr;
}

Value& filled(Build& build, const Axes& axes, float number) {
  const std::vector<float> numbers(static_cast<std::size_t>(element_count(axes.dims)), number);
  return build.constant(Tensor::of<float>(axes.dims, numbers), number == 0 ? "zeros" : "ones");
}

namespace {

/// The axes that a constant behind the normalization has to vary along, there: a Transpose may stand between.
std::optional<Axes> axes_behind(const Node& norm) {
  const Shape &y = norm.output()->shape(), &scale = norm.input(1)->shape();
  if (!y.has_rank() || !scale.known()) return {};
  Axes axes{y.rank(), 1, scale.values()};
  if (norm.is("modelflow.LayerNorm") || norm.attrs.text("layout") == "NHWC") axes.first = y.rank() - axes.dims.size();
  const Node& reader = *norm.output()->uses().front().node;
  if (!reader.is("Transpose")) return axes;
  const Ints perm = reader.attrs.ints("perm");
  const auto place = std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(axes.first));
  if (axes.dims.size() != 1 || perm.size() != axes.rank || place == perm.end()) return {};
  axes.first = static_cast<std::size_t>(place - perm.begin());
  return axes;
}

bool is_rms(const Node& norm) { return norm.attrs.integer("rms") != 0; }

/// The normalization with another scale and bias, and what stood between it and them.
Value& rebuilt(const Match& m, Build& build, Value& scale, Value* bias) {
  const Node& norm = m.node("norm");
  std::vector<Value*> inputs = {norm.input(0), &scale};
  if (bias) inputs.push_back(bias);
  Value& y = build.op("modelflow." + norm.op(), std::move(inputs), norm.attrs);
  const Node& reader = *norm.output()->uses().front().node;
  return reader.is("Transpose") ? build.op("Transpose", {&y}, reader.attrs) : y;
}

/// `old` with every number combined with the one of `change`, named like the more telling of both; null where that
/// would lose something.
template <class F>
Value* changed(Build& build, const Value& old, const std::vector<double>& change, const std::string& name, F combine) {
  std::vector<double> numbers = old.constant()->to_doubles();
  for (std::size_t i = 0; i < change.size(); ++i) numbers[i] = combine(numbers[i], change[i]);
  std::optional<Tensor> folded = from_doubles(DType::f32, old.constant()->dims(), numbers);
  return folded ? &build.constant(*std::move(folded), name) : nullptr;
}

Verdict plain(const Match& m) {
  const Node& norm = m.node("norm");
  if (input_as(norm, "residual")) return no("a residual is part of the normalization");
  if (norm.attrs.text("activation", "None") != "None") return no("an activation stands between");
  if (!axes_behind(norm)) return no("the normalized axes have no place behind the transpose, or unknown extents");
  return yes();
}

std::vector<Value*> scale(const Match& m, Build& build) {
  const Node& norm = m.node("norm");
  const Axes axes = *axes_behind(norm);
  Value &w = m.value("w"), *s = norm.input(1), *b = is_rms(norm) ? nullptr : norm.input(2);
  const bool neutral = const_number(s) == 1.0 && (!b || const_number(b) == 0.0);
  if (!w.constant()) {  // a weight that is computed, or comes from an enclosing graph
    if (!neutral || axes.first + axes.dims.size() != axes.rank || norm.is("modelflow.GroupNorm"))
      return build.refuse(no("the weight is not constant", w.name()));
    Value* given = over_axes(build, w, axes);
    return given ? std::vector<Value*>{&rebuilt(m, build, *given, b)}
                 : build.refuse(no("the weight has another shape than what is normalized", w.name()));
  }
  const auto numbers = spread(*w.constant(), axes);
  if (!numbers) return build.refuse(no("varies along other axes than those normalized", w.name()));
  if (!s->constant() || (b && !b->constant())) return build.refuse(no("the scale is not constant", s->name()));
  const auto times = [](double a, double k) { return a * k; };
  const std::vector<double> factors(numbers->begin(), numbers->end());
  Value* scale = ordinary(factors) ? changed(build, *s, factors, w.name(), times) : nullptr;
  Value* shift = scale && b ? changed(build, *b, factors, b->name(), times) : nullptr;
  if (!scale || (b && !shift)) return build.refuse(no("folding would overflow or lose digits", w.name()));
  return {&rebuilt(m, build, *scale, shift)};
}

std::vector<Value*> shift(const Match& m, Build& build) {
  const Node& norm = m.node("norm");
  const Axes axes = *axes_behind(norm);
  Value &c = m.value("c"), *b = norm.input(2);
  if (is_rms(norm)) return build.refuse(no("RMS normalization has no bias", c.name()));
  if (!c.constant()) {
    const bool last = axes.first + axes.dims.size() == axes.rank && !norm.is("modelflow.GroupNorm");
    Value* given = last && const_number(b) == 0.0 ? over_axes(build, c, axes) : nullptr;
    return given ? std::vector<Value*>{&rebuilt(m, build, *norm.input(1), given)}
                 : build.refuse(no("the bias is not constant", c.name()));
  }
  const auto numbers = spread(*c.constant(), axes);
  if (!numbers) return build.refuse(no("varies along other axes than those normalized", c.name()));
  if (!b->constant()) return build.refuse(no("the bias is not constant", b->name()));
  const auto plus = [](double a, double k) { return a + k; };
  const std::vector<double> added(numbers->begin(), numbers->end());
  Value* sum = cancels(b->constant()->to_doubles(), added) ? nullptr : changed(build, *b, added, c.name(), plus);
  if (!sum) return build.refuse(no("folding would overflow or lose digits", c.name()));
  return {&rebuilt(m, build, *norm.input(1), sum)};
}

}  // namespace

std::vector<Rule> norm_affine_rules() {
  const Pattern norm = open(op_any({"modelflow.LayerNorm", "modelflow.GroupNorm"}, {any("x"), any("s")}, "norm"));
  const Pattern y = either({norm, op("Transpose", {norm})});
  return {{.name = "norm-scale",
           .doc = "normalization(x) * w -> normalization with another scale",
           .from = y * any("w"),
           .when = {plain},
           .into = scale},
          {.name = "norm-shift",
           .doc = "normalization(x) + c -> normalization with another bias",
           .from = y + any("c"),
           .when = {plain},
           .into = shift}};
}

}  // namespace modelflow::passes
