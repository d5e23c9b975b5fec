// Group and instance normalization as exporters write them, with or without the op of newer opsets ->
// modelflow.GroupNorm.
#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"
#include "passes/normalize/norms.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

Verdict is_float32_image(const Match& m) {
  const Value& x = m.value("x");
  if (x.dtype() != DType::f32) return no("it is not float32", x.name());
  if (!x.shape().has_rank() || x.shape().rank() < 3) return no("its rank is below 3 or unknown", x.name());
  return yes();
}

/// The value whose shape the norm is said in, x or y: the one of fewer axes, as views of the pixels (unfolded patches)
/// may have been merged with the Reshapes around the groups.
const Value& image_of(const Match& m) {
  const Value &x = m.value("x"), &y = *m.root().output();
  const bool fewer = y.shape().has_rank() && y.shape().rank() >= 3 && y.shape().rank() < x.shape().rank();
  return fewer ? y : x;
}

/// What brings numbers of one shape into another; nothing where they are of one shape.
std::optional<Ints> view(const Shape& from, const Shape& to) {
  std::size_t open = 0;  // one dim that is not proven equal follows from the number of elements
  for (std::size_t i = 0; i < to.rank() && to.rank() == from.rank(); ++i) open += from[i] == to[i] ? 0 : 1;
  if (to.rank() == from.rank() && open <= 1) return Ints{};
  std::optional<Ints> target = reshape_target(from.dims(), to.dims());
  return target && !refuses_empty(*target) ? target : std::nullopt;
}

/// Reshapes that join some channels and all pixels into groups, and bring back the shape of x or another one.
Verdict groups_and_back(const Match& m) {
  const Value &x = m.value("x"), &y = *m.root().output(), &grouped = *m.node("norm").input(0), &image = image_of(m);
  if (!image.shape()[1].known()) return no("the number of channels is unknown", image.name());
  if (!grouped.shape().has_rank() || grouped.shape().rank() < 3 || !grouped.shape()[1].known())
    return no("the number of groups is unknown", grouped.name());
  if (!(grouped.shape()[0] == image.shape()[0])) return no("the batch may change", grouped.name());
  const std::int64_t groups = grouped.shape()[1].value();
  if (groups < 1 || image.shape()[1].value() % groups != 0)
    return no("the groups do not divide the channels", image.name());
  return y.shape().has_rank() && view(x.shape(), y.shape()) ? yes() : no("the shape of x does not return", y.name());
}

/// One number per group -> one per channel; null when it is not constant or of another size.
Value* per_channel(Build& build, const Value& value, std::int64_t groups, std::int64_t channels) {
  const Tensor* constant = value.constant();
  if (!constant || constant->dtype() != DType::f32 || constant->elements() != groups) return nullptr;
  std::vector<float> numbers;
  for (const float number : constant->as<float>())
    numbers.insert(numbers.end(), static_cast<std::size_t>(channels / groups), number);
  return &build.constant(Tensor::of<float>({channels}, numbers), value.name());
}

std::vector<Value*> make(Build& build, Value& x, std::int64_t groups, float epsilon, Value& scale, Value& bias,
                         const char* layout = "NCHW") {
  if (build.opset() < 12) return build.refuse(no("GroupNorm is said in ops of opset 12 and later", x.name()));
  return {&build.op("modelflow.GroupNorm", {&x, &scale, &bias},
                    {{"num_groups", groups}, {"epsilon", epsilon}, {"layout", std::string(layout)}})};
}

Value& viewed(Build& build, Value& x, const Shape& from, const Shape& to) {
  const Ints target = *view(from, to);
  return target.empty() ? x : build.op("Reshape", {&x, &build.constant(tensor_of(target), "shape")});
}

/// GroupNorm in the shape of image_of().
std::vector<Value*> between_views(const Match& m, Build& build, float epsilon, Value& scale, Value& bias) {
  const Shape &x = m.value("x").shape(), &image = image_of(m).shape(), &y = m.root().output()->shape();
  const std::int64_t groups = m.node("norm").input(0)->shape()[1].value();
  std::vector<Value*> made = make(build, viewed(build, m.value("x"), x, image), groups, epsilon, scale, bias);
  for (Value*& value : made) value = &viewed(build, *value, image, y);
  return made;
}

std::vector<Value*> from_instances(const Match& m, Build& build) {
  const Node& norm = m.node("norm");
  const std::int64_t groups = norm.input(0)->shape()[1].value(), channels = image_of(m).shape()[1].value();
  Value* scale = per_channel(build, m.value("s"), groups, channels);
  Value* bias = per_channel(build, m.value("b"), groups, channels);
  if (!scale || !bias) return build.refuse(no("scale or bias of the groups is not constant", norm.output()->name()));
  return between_views(m, build, norm.attrs.number("epsilon", 1e-5F), *scale, *bias);
}

/// Means over all axes behind the groups.
std::vector<Value*> from_layers(const Match& m, Build& build) {
  const Node& norm = m.node("norm");
  const Shape& grouped = norm.input(0)->shape();
  if (norm.attrs.integer("rms") || norm.attrs.text("residual") != "none")
    return build.refuse(no("it is no layer normalization", norm.output()->name()));
  if (norm.attrs.integer("axis") != 2 - static_cast<std::int64_t>(grouped.rank()))
    return build.refuse(no("not all axes of a group are normalized", norm.output()->name()));
  const std::optional<double> s = const_number(&m.value("s")), b = const_number(&m.value("b"));
  if (!s || !b) return build.refuse(no("the scale varies within a group", norm.output()->name()));
  const Axes axes{1, 0, {image_of(m).shape()[1].value()}};
  return between_views(m, build, norm.attrs.number("epsilon"), filled(build, axes, static_cast<float>(*s)),
                       filled(build, axes, static_cast<float>(*b)));
}

/// [N,H,W,C] -> [N,H,W,G,C/G] -> [N,H,W,C], means over all but batch and groups (Keras).
std::vector<Value*> from_channels_last(const Match& m, Build& build) {
  Value &x = m.value("x"), &split = *m.node("split").output();
  const Shape &shape = split.shape(), &y = m.root().output()->shape();
  const std::size_t rank = x.shape().rank();
  if (!shape.has_rank() || shape.rank() != rank + 1)
    return build.refuse(no("does not split the channels", split.name()));
  const Dim &groups = shape[rank - 1], &per = shape[rank];
  if (!groups.known() || !per.known() || !(x.shape().back() == groups * per) || !(x.shape()[0] == shape[0]))
    return build.refuse(no("does not split the channels into a known number of groups", split.name()));
  Ints others;
  for (std::size_t i = 1; i <= rank; ++i)
    if (i != rank - 1) others.push_back(static_cast<std::int64_t>(i));
  if (mean_axes(m) != others) return build.refuse(no("not all of a group is normalized", split.name()));
  std::size_t open = y.has_rank() && y.rank() == rank ? 0 : 2;
  for (std::size_t i = 0; open < 2 && i < rank; ++i) open += x.shape()[i] == y[i] ? 0 : 1;
  if (open > 1) return build.refuse(no("the shape of x does not return", m.root().output()->name()));
  const Axes axes{rank + 1, rank - 1, {groups.value(), per.value()}};
  std::vector<Value*> constants;
  for (const char* name : {"gamma", "beta"}) {
    const Tensor* given = m.value(name).constant();
    const auto numbers = given ? spread(*given, axes) : std::nullopt;
    if (!numbers) return build.refuse(no("is not one constant per channel", m.value(name).name()));
    constants.push_back(&build.constant(Tensor::of<float>({groups.value() * per.value()}, *numbers), name));
  }
  const auto epsilon = static_cast<float>(*const_number(&m.value("epsilon")));
  return make(build, x, groups.value(), epsilon, *constants[0], *constants[1], "NHWC");
}

/// One number per channel (per group before opset 21).
std::vector<Value*> from_op(const Match& m, Build& build) {
  const Node& norm = m.node("norm");
  Value &x = m.value("x"), *scale = &m.value("s"), *bias = &m.value("b");
  const bool instances = norm.is("InstanceNormalization");
  const Shape& size = scale->constant() ? Shape::of(scale->constant()->dims()) : scale->shape();
  const Dim& channels = x.shape()[1].known() || !instances || !size.has_rank() ? x.shape()[1] : size[0];
  if (!channels.known()) return build.refuse(no("the number of channels is unknown", x.name()));
  if (norm.attrs.integer("stash_type", 1) != 1)
    return build.refuse(no("it does not compute in float32", norm.output()->name()));
  const std::int64_t groups = instances ? channels.value() : norm.attrs.integer("num_groups");
  if (!(size == Shape::of({channels.value()}))) {
    scale = per_channel(build, *scale, groups, channels.value());
    bias = per_channel(build, *bias, groups, channels.value());
  } else if (!bias->shape().has_rank() || bias->shape().rank() != 1) {
    return build.refuse(no("is not of rank 1", bias->name()));
  }
  if (!scale || !bias) return build.refuse(no("the scale has not one number per channel", m.value("s").name()));
  return make(build, x, groups, norm.attrs.number("epsilon", 1e-5F), *scale, *bias);
}

}  // namespace

std::vector<Rule> group_norm_rules() {
  const Pattern x = any("x"), s = any("s"), b = any("b");
  const Pattern grouped = open(op_any({"Reshape", "Unsqueeze"}, {x}));
  const auto restored = [](Pattern y) { return open(op_any({"Reshape", "Squeeze"}, {std::move(y)})); };
  return {{.name = "group-norm-from-instances",
           .doc = "Reshape(InstanceNormalization(Reshape(x))) -> GroupNorm",
           .from = restored(op("InstanceNormalization", {grouped, s, b}, "norm")),
           .when = {is_float32_image, groups_and_back},
           .into = from_instances},
          {.name = "group-norm-from-layers",
           .doc = "Reshape(LayerNorm(Reshape(x))) over whole groups -> GroupNorm",
           .from = restored(op("modelflow.LayerNorm", {grouped, s, b}, "norm")),
           .when = {is_float32_image, groups_and_back},
           .into = from_layers},
          {.name = "group-norm-channels-last",
           .doc = "Reshape(x * gain + shift) of groups in the last axis, as Keras writes it -> GroupNorm",
           .from = restored(tensorflow_norm(open(op("Reshape", {x}, "split")))),
           .when = {is_float32_image, small_number},
           .into = from_channels_last},
          {.name = "group-norm-op",
           .doc = "GroupNormalization, InstanceNormalization -> GroupNorm",
           .from = op_any({"GroupNormalization", "InstanceNormalization"}, {x, s, b}, "norm"),
           .when = {is_float32_image},
           .into = from_op}};
}

Pass normalize_norms() {
  std::vector<Rule> rules = group_norm_rules();
  for (std::vector<Rule> more : {layer_norm_rules(), norm_affine_rules()})
    rules.insert(rules.end(), more.begin(), more.end());
  return rewrite("normalize-norms", "Finds normalizations that exporters wrote as several nodes.", std::move(rules));
}

}  // namespace modelflow::passes
