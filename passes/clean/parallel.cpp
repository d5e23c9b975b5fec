// Convolutions of one input whose results are added become one: its weights are theirs, the smaller window laid into
// the larger. BatchNormalization beside a convolution is a window of one pixel, and so is the input itself. Networks
// that are trained in branches and exported as they were trained look like that: RepVGG (arXiv 2101.03697), MobileOne,
// FastViT, RepGhost, ACNet, RepViT (arXiv 2307.09283), and positions by depthwise convolutions (arXiv 2102.10882).
#include <algorithm>
#include <optional>

#include "passes/clean/clean.h"
#include "passes/graph/batch_norm.h"
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/graph/precision.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

/// A convolution by its numbers: weights [out, in / group, window], bias [out].
struct Branch {
  Dims dims;
  std::vector<double> weights, bias;
  Ints strides, dilations, pads;
  std::int64_t group = 1;

  std::size_t axes() const { return dims.size() - 2; }
  std::int64_t extent(std::size_t axis) const { return dims[axis + 2]; }
};

/// An empty list is none.
Ints per_axis(const Node& node, std::string_view name, std::size_t length, std::int64_t otherwise) {
  const Ints given = node.attrs.ints(name);
  return given.empty() ? Ints(length, otherwise) : given;
}

Branch convolution(const Match& m, const std::string& number) {
  const Node& node = m.node("conv" + number);
  const Tensor& w = m.constant("w" + number);
  const std::size_t axes = w.rank() - 2;
  Branch branch;
  branch.dims = w.dims(), branch.weights = w.to_doubles();
  branch.strides = per_axis(node, "strides", axes, 1);
  branch.dilations = per_axis(node, "dilations", axes, 1);
  branch.pads = per_axis(node, "pads", 2 * axes, 0);
  branch.group = node.attrs.integer("group", 1);
  branch.bias.resize(static_cast<std::size_t>(w.dims()[0]));
  if (m["b" + number]) branch.bias = m.constant("b" + number).to_doubles();
  return branch;
}

/// Each channel scaled and shifted, in as many groups as `beside` has.
Branch per_channel(const Affine& affine, const Branch& beside) {
  Branch branch = beside;
  branch.strides.assign(beside.axes(), 1);
  branch.dilations = branch.strides;
  branch.pads.assign(2 * beside.axes(), 0);
  std::fill(branch.dims.begin() + 2, branch.dims.end(), 1);
  const auto inner = static_cast<std::size_t>(branch.dims[1]);
  branch.weights.assign(affine.scale.size() * inner, 0);
  for (std::size_t c = 0; c < affine.scale.size(); ++c) branch.weights[c * inner + c % inner] = affine.scale[c];
  branch.bias = affine.shift;
  return branch;
}

/// Where the window of `small` lies in that of `large`: the first tap on each axis; nullopt where it does not, or where
/// the results have unlike extents.
std::optional<Ints> place(const Branch& small, const Branch& large) {
  Ints first;
  for (std::size_t i = 0; i < large.axes(); ++i) {
    const std::int64_t d = large.dilations[i], k = large.extent(i), ahead = large.pads[i] - small.pads[i];
    const std::int64_t reach = large.pads[i] + large.pads[i + large.axes()] - d * (k - 1);
    const std::int64_t own = small.pads[i] + small.pads[i + large.axes()] - small.dilations[i] * (small.extent(i) - 1);
    const bool same_steps = small.extent(i) == 1 || small.dilations[i] == d;
    if (reach != own || !same_steps || ahead % d != 0 || ahead < 0 || ahead / d + small.extent(i) > k) return {};
    first.push_back(ahead / d);
  }
  return first;
}

/// b as convolution with the window of a.
std::vector<double> laid_into(const Branch& a, const Branch& b, const Ints& first) {
  std::int64_t window_a = 1, window_b = 1;
  for (std::size_t i = 0; i < a.axes(); ++i) window_a *= a.extent(i), window_b *= b.extent(i);
  std::vector<double> weights(a.weights.size());
  for (std::size_t at = 0; at < b.weights.size(); ++at) {
    auto tap = static_cast<std::int64_t>(at) % window_b;
    std::int64_t target = static_cast<std::int64_t>(at) / window_b * window_a, step = 1;
    for (std::size_t i = a.axes(); i-- > 0; tap /= b.extent(i), step *= a.extent(i))
      target += (tap % b.extent(i) + first[i]) * step;
    weights[static_cast<std::size_t>(target)] = b.weights[at];
  }
  return weights;
}

/// As a constant, with the dims of the first; nullopt where sums overflow, or where both cancel.
std::optional<Tensor> added(DType dtype, const Dims& dims, std::vector<double> a, std::vector<double> b,
                            double sign_of_a, double sign_of_b) {
  for (double& x : a) x *= sign_of_a;
  for (double& x : b) x *= sign_of_b;
  if (cancels(a, b)) return {};
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return from_doubles(dtype, dims, a);
}

Verdict plain(const Match& m, const std::string& number) {
  const Node& node = m.node("conv" + number);
  const Tensor& w = m.constant("w" + number);
  if (!explicit_pads(node)) return no("auto_pad decides where its window lies", node.name);
  if (!foldable_float(w.dtype())) return no("the weights are no float32", m["w" + number]->name());
  if (w.rank() < 3) return no("its weights have no window", m["w" + number]->name());
  const std::size_t axes = w.rank() - 2;
  for (const auto& [name, length] : {std::pair("strides", axes), {"dilations", axes}, {"pads", 2 * axes}})
    if (per_axis(node, name, length, 0).size() != length) return no(std::string(name) + " of other axes", node.name);
  const Value* b = m["b" + number];
  return !b || m.constant("b" + number).elements() == w.dims()[0] ? yes() : no("the bias does not fit", b->name());
}

/// What the first convolution is added to: a function of its input, or that itself.
enum class Other { convolution, normalization, input };

struct Pair {
  Branch first, second;
};

Pair pair_of(const Match& m, Other other) {
  Branch first = convolution(m, "1");
  if (other == Other::convolution) return {std::move(first), convolution(m, "2")};
  const auto channels = static_cast<std::size_t>(first.dims[0]);
  const Affine affine = other == Other::normalization
                            ? affine_of(*m["n"]->producer())
                            : Affine{std::vector<double>(channels, 1), std::vector<double>(channels, 0)};
  Branch second = per_channel(affine, first);
  return {std::move(first), std::move(second)};
}

Verdict normalizes_x(const Match& m) {
  const Node* bn = m["n"]->producer();
  if (!bn) return no("is no BatchNormalization", m["n"]->name());
  if (Verdict verdict = inference_form(*bn); !verdict) return verdict;
  if (bn->input(0) != m["x"]) return no("it normalizes something else", bn->label());
  return bn->input(1)->constant()->elements() == m.constant("w1").dims()[0]
             ? yes()
             : no("its channels are not those of its input");
}

Verdict fit(const Match& m, Other other) {
  if (Verdict verdict = plain(m, "1"); !verdict) return verdict;
  if (other == Other::normalization)
    if (Verdict verdict = normalizes_x(m); !verdict) return verdict;
  const Node* source = m["x"]->producer();
  if (other == Other::input && source && source->is("DequantizeLinear"))
    return no("in 8 bits its weights would be lost beside the one that is added", source->label());
  if (other == Other::convolution) {
    if (Verdict verdict = plain(m, "2"); !verdict) return verdict;
  } else {
    const Dims& dims = m.constant("w1").dims();
    if (dims[0] != dims[1] * m.node("conv1").attrs.integer("group", 1))
      return no("its channels are not those of its input");
  }
  const auto [a, b] = pair_of(m, other);
  if (a.dims.size() != b.dims.size() || a.dims[0] != b.dims[0] || a.dims[1] != b.dims[1] || a.group != b.group)
    return no("unlike channels or groups");
  if (a.strides != b.strides) return no("unlike strides");
  return place(b, a) || place(a, b) ? yes() : no("neither window lies in the other");
}

/// sign_of_1 * conv1 + sign_of_2 * the other branch.
std::vector<Value*> merged(const Match& m, Build& build, Other other, double sign_of_1, double sign_of_2) {
  auto [a, b] = pair_of(m, other);
  std::optional<Ints> at = place(b, a);
  const bool first_is_larger = at.has_value();
  if (!first_is_larger) {
    std::swap(a, b), std::swap(sign_of_1, sign_of_2);
    at = place(b, a);
  }
  const DType dtype = m.constant("w1").dtype();
  std::optional<Tensor> w = added(dtype, a.dims, a.weights, laid_into(a, b, *at), sign_of_1, sign_of_2);
  std::optional<Tensor> bias = added(dtype, {a.dims[0]}, a.bias, b.bias, sign_of_1, sign_of_2);
  if (!w || !bias) return build.refuse(no("the sum of their weights or biases overflows or cancels"));
  Attrs attrs{{"strides", a.strides}, {"dilations", a.dilations}, {"pads", a.pads}, {"group", a.group}};
  attrs.set("kernel_shape", Attr(Ints(a.dims.begin() + 2, a.dims.end())));
  Value& weights = build.constant(std::move(*w), m["w1"]->name());
  return {&build.op("Conv", {m["x"], &weights, &build.constant(std::move(*bias), m["w1"]->name() + "_bias")}, attrs)};
}

Rule rule(std::string name, std::string doc, Pattern from, Other other, double sign_of_1, double sign_of_2) {
  return {.name = std::move(name),
          .doc = std::move(doc),
          .from = std::move(from),
          .when = {[=](const Match& m) { return fit(m, other); }},
          .into = [=](const Match& m, Build& build) { return merged(m, build, other, sign_of_1, sign_of_2); }};
}

}  // namespace

Pass merge_parallel(const Options& options) {
  const auto conv = [](const std::string& number) {
    return op("Conv", {any("x"), constant("w" + number), optional(constant("b" + number))}, "conv" + number);
  };
  // The normalization may have other readers: FastViT's two of one input are one before they are trained.
  const Pattern first = conv("1"), second = conv("2"), norm = any("n");
  std::vector<Rule> rules = {
      rule("sum-of-convolutions", "Conv(x) + Conv(x) -> Conv(x), as RepVGG, MobileOne and ACNet train", first + second,
           Other::convolution, 1, 1),
      rule("difference-of-convolutions", "Conv(x) - Conv(x) -> Conv(x)", first - second, Other::convolution, 1, -1),
      rule("convolution-plus-batch-norm", "Conv(x) + BatchNormalization(x) -> Conv(x)", first + norm,
           Other::normalization, 1, 1),
      rule("convolution-minus-batch-norm", "Conv(x) - BatchNormalization(x) -> Conv(x), FastViT's token mixer",
           first - norm, Other::normalization, 1, -1),
      rule("batch-norm-minus-convolution", "BatchNormalization(x) - Conv(x) -> Conv(x)", norm - first,
           Other::normalization, -1, 1),
  };
  // In lower precision the weights around the one that is added to it are lost beside it.
  if (!lowers_convolutions(options))
    rules.push_back(rule("convolution-plus-input", "Conv(x) + x -> Conv(x), as RepViT and Twins have it",
                         first + any("x"), Other::input, 1, 1));
  return rewrite("merge-parallel", "Adds the weights of convolutions of one input whose results are added.",
                 std::move(rules));
}

}  // namespace modelflow::passes
