// Products over a Concat whose parts are partly one row repeated: statistics pooling with attention (ECAPA-TDNN), the
// global feature of a cloud of points (PointNet), pooled images (DeepLab), a code beside coordinates (DeepSDF).
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/graph/channels_last.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/linear.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// What the product multiplies by which channels of the weights.
struct Part {
  std::vector<Value*> operands;
  Ints channels;
};

/// The operands of the Concat apart: those that differ from place to place, and what the others repeat.
struct Parts {
  Part full, repeated;
};

std::int64_t channel_axis(const Node& product, std::size_t rank) {
  return product.is("Conv") ? 1 : static_cast<std::int64_t>(rank) - 1;
}

/// Between equal numbers linear and nearest find the same again, where nothing else is resized. (Weights of cubic add
/// up to nearly 1, and a crop may lie outside.)
bool repeats_pixels(const Node& node) {
  if (!node.is("Resize") || node.attrs.text("mode", "nearest") == "cubic" || node.attrs.integer("antialias") != 0 ||
      node.attrs.text("coordinate_transformation_mode") == "tf_crop_and_resize")
    return false;
  if (node.input(3)) return true;  // an extent that stays is scaled by 1
  const Value* scales = node.inputs().size() == 2 ? node.input(1) : node.input(2);
  const Shape& x = node.input(0)->shape();
  if (!scales || !scales->constant() || scales->constant()->elements() != static_cast<std::int64_t>(x.rank()))
    return false;
  const std::vector<double> factors = scales->constant()->to_doubles();
  for (std::size_t i = 0; i < factors.size(); ++i)
    if (factors[i] != 1 && x[i].number() != 1) return false;
  return true;
}

/// What `value` repeats along other axes than that of the channels; null where it does not. A batch of one may be
/// repeated, too.
Value* source_of(const Value& value, std::int64_t channels) {
  const Node* node = value.producer();
  if (!node || !(node->is("Expand") || node->is("Tile") || repeats_pixels(*node))) return nullptr;
  Value* source = node->input(0);
  const Shape &one = source->shape(), &many = value.shape();
  if (!one.has_rank() || !many.has_rank() || one.rank() != many.rank()) return nullptr;
  bool repeats = false;
  for (std::size_t i = 0; i < one.rank(); ++i) {
    if (one[i] == many[i]) continue;
    if (one[i].number() != 1 || static_cast<std::int64_t>(i) == channels) return nullptr;
    repeats = true;
  }
  return repeats ? source : nullptr;
}

/// Whether these differ along the axis of the channels alone, so that a Concat can join them.
bool joinable(const std::vector<Value*>& values, std::int64_t channels) {
  return std::ranges::all_of(values, [&](const Value* value) {
    const Shape &first = values[0]->shape(), &shape = value->shape();
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (static_cast<std::int64_t>(i) != channels && !(shape[i] == first[i])) return false;
    return true;
  });
}

std::optional<Parts> parts_of(const Match& m) {
  const Node& concat = m.node("concat");
  const std::optional<std::size_t> rank = rank_of(concat.output());
  if (!rank || *rank == 0) return {};
  const std::int64_t channels = channel_axis(m.root(), *rank);
  const std::optional<Ints> axis = positive({concat.attrs.integer("axis")}, static_cast<std::int64_t>(*rank));
  if (!axis || axis->front() != channels) return {};
  Parts parts;
  std::int64_t at = 0;
  for (Value* operand : concat.inputs()) {
    if (rank_of(operand) != rank) return {};
    const std::int64_t count = operand->shape()[static_cast<std::size_t>(channels)].number().value_or(0);
    if (count < 1) return {};
    Value* source = source_of(*operand, channels);
    Part& part = source ? parts.repeated : parts.full;
    part.operands.push_back(source ? source : operand);
    for (std::int64_t i = 0; i < count; ++i) part.channels.push_back(at++);
  }
  const bool both = !parts.full.operands.empty() && !parts.repeated.operands.empty();
  return both && joinable(parts.repeated.operands, channels) ? std::optional(parts) : std::nullopt;
}

/// Where the weights have the channels that they multiply.
std::int64_t weights_axis(const Node& product) {
  return product.is("Conv") || product.attrs.integer("transB") != 0 ? 1 : 0;
}

/// Convolutions see one place at a time, and all places.
Verdict one_place(const Match& m) {
  const Attrs& attrs = m.root().attrs;
  if (attrs.integer("group", 1) != 1) return no("it works in groups");
  if (!all_are(m.constant("w").dims(), 1, 2)) return no("its window is larger than one");
  if (!all_are(attrs.ints("pads"), 0) || !all_are(attrs.ints("strides"), 1)) return no("it pads or leaves places out");
  return yes();
}

Verdict repeats_parts(const Match& m) {
  const std::optional<Parts> parts = parts_of(m);
  const Value& joined = *m.node("concat").output();
  if (!parts) return no("no operand is known to be repeated beside others that are not", joined.name());
  const Tensor& w = m.constant("w");
  const std::int64_t axis = weights_axis(m.root());
  if (w.rank() < 2 || (!m.root().is("Conv") && w.rank() != 2))
    return no("the weights are no matrix", m.value("w").name());
  if (w.dims()[static_cast<std::size_t>(axis)] !=
      static_cast<std::int64_t>(parts->full.channels.size() + parts->repeated.channels.size()))
    return no("the weights are of other channels", m.value("w").name());
  return yes();
}

/// For each place the sum is read and written once more; the products, and writing and joining what is repeated, go.
bool worth_it(const Tensor& w, std::int64_t axis, const Part& repeated, const Target& target) {
  const auto gone = static_cast<double>(repeated.channels.size());
  const double outputs =
      static_cast<double>(w.elements()) / static_cast<double>(w.dims()[static_cast<std::size_t>(axis)]);
  return target.compute(2 * gone * outputs) + target.stream(12 * gone) > target.stream(8 * outputs);
}

Value& joined(Build& build, const Part& part, std::int64_t channels) {
  return part.operands.size() == 1 ? *part.operands[0] : build.op("Concat", part.operands, {{"axis", channels}});
}

/// A convolution that sees one place at a time, as the product that it is: of few places, single ones as a rule, whose
/// axes views can turn.
Value& rows_product(Build& build, Value& x, Value& w, std::int64_t outputs, Value* bias) {
  const std::size_t rank = *rank_of(&x);
  Value& matrix = build.op("Reshape", {&w, &build.constant(tensor_of({outputs, -1}), "shape")});
  Value* y = &build.op("MatMul", {&build.op("Transpose", {&x}, {{"perm", to_last(rank)}}),
                                  &build.op("Transpose", {&matrix}, {{"perm", Ints{1, 0}}})});
  if (bias) y = &build.op("Add", {y, bias});
  return build.op("Transpose", {y}, {{"perm", to_first(rank)}});
}

std::vector<Value*> two_products(const Match& m, Build& build) {
  const Parts parts = *parts_of(m);
  const Node& product = m.root();
  if (build.opset() < 11 && product.is("Gemm")) return build.refuse(no("Gemm without C is of opset 11"));
  const std::int64_t axis = weights_axis(product),
                     channels = channel_axis(product, *rank_of(m.node("concat").output()));
  if (!worth_it(m.constant("w"), axis, parts.repeated, build.context().target))
    return build.refuse(no("too little of it is repeated", m.node("concat").output()->name()));
  const auto columns = [&](const Part& part) -> Value& {
    return build.op("Gather", {&m.value("w"), &build.constant(tensor_of(part.channels), "channels")}, {{"axis", axis}});
  };
  Value &once = joined(build, parts.repeated, channels), &once_w = columns(parts.repeated);
  std::vector<Value*> inputs = {&once, &once_w};
  if (m["c"]) inputs.push_back(m["c"]);
  Value& repeated = product.is("Conv") ? rows_product(build, once, once_w, m.constant("w").dims()[0], m["c"])
                                       : build.op(product.op(), inputs, product.attrs);
  Value& full = build.op(product.op(), {&joined(build, parts.full, channels), &columns(parts.full)}, product.attrs);
  return {&build.op("Add", {&full, &repeated})};
}

}  // namespace

std::vector<Rule> broadcast_parts_rules() {
  const Pattern x = open(op("Concat", {any("first")}, "concat")), w = constant("w");
  const auto rule = [](const char* name, const char* doc, Pattern from, std::vector<Condition> when) -> Rule {
    when.emplace_back(repeats_parts);
    return {.name = name, .doc = doc, .from = std::move(from), .when = std::move(when), .into = two_products};
  };
  return {rule("convolution-of-repeated-parts",
               "Conv(Concat(x, Expand(s)), w) with a window of 1 -> Conv(x, w1) + s w2, which broadcasts",
               op("Conv", {x, w, optional(any("c"))}, "product"), {one_place}),
          rule("matmul-of-repeated-parts",
               "MatMul(Concat(x, Expand(s)), w) -> MatMul(x, w1) + MatMul(s, w2), which broadcasts",
               op("MatMul", {x, w}, "product"), {}),
          rule("gemm-of-repeated-parts",
               "Gemm(Concat(x, Expand(s)), w, c) -> Gemm(x, w1) + Gemm(s, w2, c), which broadcasts",
               op("Gemm", {x, w, optional(any("c"))}, "product"), {plain_gemm, bias_is_vector})};
}

}  // namespace modelflow::passes
