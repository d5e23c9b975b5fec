// Activations and sums behind a fused op, taken into it one by one.
#include "passes/graph/epilogue.h"

#include <cmath>
#include <limits>

#include "modelflow/modelflow.h"
#include "passes/graph/edits.h"
#include "passes/graph/folded.h"
#include "passes/graph/precision.h"

namespace modelflow::passes {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest(), kHighest = std::numeric_limits<float>::max();

/// Bounds are attributes before opset 11 and inputs from then on; an absent one is the lowest or highest number, which
/// infinities are cut to. What a bound below the other, or one that is NaN, means is left to ONNX Runtime.
std::optional<Activation> clip(const Node& node) {
  Activation result{"Clip", node.attrs.number("min", kLowest), node.attrs.number("max", kHighest)};
  for (std::size_t i : {1, 2}) {
    if (!node.input(i)) continue;
    const std::optional<float> bound = scalar(node.input(i));
    if (!bound) return {};
    (i == 1 ? result.alpha : result.beta) = *bound;
  }
  return result.alpha <= result.beta ? std::optional(result) : std::nullopt;
}

/// One attempt to take `user` into `fused`: what the new node looks like, or why not.
struct Step {
  std::string_view suffix;  ///< of the rule name
  Value* input = nullptr;   ///< appended to the inputs
  bool is_bias = false;     ///< `input` goes behind the weights
  Attrs attrs;
  bool in_front_of_residual = false;  ///< `input` does
};

class Epilogue {
 public:
  Epilogue(Node& fused, Node& user, Context& context, Extents& extents, std::string_view rule)
      : fused_(fused), user_(user), context_(context), extents_(extents), rule_(rule) {}

  std::optional<Step> next() {
    if (std::optional<Activation> activation = activation_of(user_)) return take_activation(*activation);
    if (user_.is("Max")) return take_bound();
    if (user_.is("PRelu")) return take_slopes(*user_.input(1));
    if (user_.is("Add") || user_.is("Sub")) {
      if (std::optional<Step> step = take_affine()) return step;
      if (user_.is("Sub")) return {};
      Value* other = user_.input(user_.input(0) == fused_.output() ? 1 : 0);
      if (std::optional<Step> step = take_bias(*other)) return step;
      return take_residual(*other, "-residual", active() || affine() ? "after" : "before");
    }
    if (!user_.is("Mul") && !user_.is("Div")) return {};
    if (std::optional<Step> step = take_affine()) return step;
    return user_.is("Mul") ? take_factor(*user_.input(user_.input(0) == fused_.output() ? 1 : 0)) : std::nullopt;
  }

 private:
  bool active() const { return fused_.attrs.text("activation", "None") != "None"; }
  bool ends_in_residual() const { return residual() == "after" || residual() == "times"; }
  std::string residual() const { return fused_.attrs.text("residual", "none"); }
  float scale() const { return fused_.attrs.number("post_scale", 1); }
  float shift() const { return fused_.attrs.number("post_shift"); }
  bool affine() const { return scale() != 1 || shift() != 0; }
  void miss(std::string_view suffix, std::string_view reason) {
    context_.miss(std::string(rule_) + std::string(suffix), &user_, reason);
  }

  std::optional<Step> take_activation(const Activation& activation) {
    if (active() || affine() || ends_in_residual()) return {};
    if (activation.scale != 1 && !fused_.attrs.has("post_scale")) return {};
    Step step{"-activation", nullptr, false, fused_.attrs};
    step.attrs.set("activation", activation.kind)
        .set("alpha", Attr(activation.alpha))
        .set("beta", Attr(activation.beta));
    if (activation.scale != 1) step.attrs.set("post_scale", Attr(activation.scale));
    return step;
  }

  /// PRelu with a slope for each channel, as face recognition has it. In 8 bits there is no such op: there it stays.
  std::optional<Step> take_slopes(Value& slopes) {
    if (!fused_.is("modelflow.Conv") || active() || affine() || ends_in_residual()) return {};
    const std::optional<std::int64_t> filters = weights_in(fused_)->shape()[0].number();
    if (!filters || !along_channels(slopes, *filters)) return {};
    const Node* before = fused_.input(0)->producer();
    if (replaces_convolutions(context_.options) || (before && before->is("DequantizeLinear"))) {
      miss("-slopes", "there are no slopes of channels in lower precision");
      return {};
    }
    Step step{"-slopes", nullptr, false, fused_.attrs};
    step.input = &user_.graph().add_constant(slopes.constant()->reshaped({*filters}), slopes.name());
    step.in_front_of_residual = true;
    step.attrs.set("activation", "PRelu");
    return step;
  }

  /// A constant of float32 with a number for each channel of a convolution's result: [M, 1, 1], with or without a 1 for
  /// the batch.
  bool along_channels(const Value& value, std::int64_t channels) const {
    const Tensor* constant = value.constant();
    if (!constant || constant->dtype() != DType::f32) return false;
    Dims expected(weights_in(fused_)->shape().rank() - 1, 1), dims = constant->dims();
    expected[0] = channels;
    if (dims.size() == expected.size() + 1 && dims[0] == 1) dims.erase(dims.begin());
    return dims == expected;
  }

  /// Max(LeakyRelu(x), number), as Google's speech embedding has it behind every convolution.
  std::optional<Step> take_bound() {
    if (fused_.attrs.text("activation", "None") != "LeakyRelu" || affine() || ends_in_residual()) return {};
    if (user_.inputs().size() != 2 || user_.input(0) == user_.input(1)) return {};
    const Value* other = user_.input(user_.input(0) == fused_.output() ? 1 : 0);
    const std::optional<float> bound = scalar(other);
    if (!bound || std::isnan(*bound) || !raises_no_rank(*other)) return {};
    Step step{"-bound", nullptr, false, fused_.attrs};
    step.attrs.set("activation", "BoundedLeakyRelu").set("beta", Attr(*bound));
    return step;
  }

  bool raises_no_rank(const Value& constant) {
    const Shape y = extents_.of(*fused_.output());
    return y.has_rank() && constant.constant()->rank() <= y.rank();
  }

  /// A constant along the channels, before anything else: [M], or [M,1,1] where the channels are second.
  std::optional<Step> take_bias(Value& other) {
    const Tensor* constant = other.constant();
    if (!constant || constant->dtype() != DType::f32 || active() || residual() != "none") return {};
    if (!fused_.attrs.has("has_bias") || fused_.attrs.integer("has_bias")) return {};
    if (std::optional<Step> step = take_row_bias(other)) return step;
    if (fused_.attrs.integer("row_bias")) return {};
    const Shape& w = weights_in(fused_)->shape();
    if (!w.known()) return {};
    // Conv is channels second here, MatMul and ConvTranspose have their channels last.
    const bool conv = fused_.is("modelflow.Conv");
    std::size_t axis = conv ? 0 : w.rank() - (fused_.attrs.integer("trans_b") ? 2 : 1);
    if (fused_.is("modelflow.ConvTranspose")) axis = 1;
    const std::int64_t channels = w[axis].value();
    Dims expected(conv ? w.rank() - 1 : 1, 1);
    expected[0] = channels;
    Dims dims = constant->dims();
    while (dims.size() > expected.size() && dims[0] == 1) dims.erase(dims.begin());
    const bool one_rank = fused_.output()->shape().has_rank() && constant->rank() <= fused_.output()->shape().rank();
    if (dims != expected || (!one_rank && constant->rank() > expected.size())) return {};
    Step step{"-bias", nullptr, true, fused_.attrs};
    step.input = &user_.graph().add_constant(constant->reshaped({channels}), other.name());
    step.attrs.set("has_bias", 1);
    return step;
  }

  /// A number for each row, [M, 1], of a product that no weights multiply from the right: those of tokens.
  std::optional<Step> take_row_bias(const Value& other) {
    if (!fused_.is("modelflow.MatMul") || fused_.input(1)->constant()) return {};
    const Shape y = extents_.of(*fused_.output());
    Dims dims = other.constant()->dims();
    if (!y.has_rank() || dims.size() > y.rank()) return {};
    while (dims.size() > 2 && dims[0] == 1) dims.erase(dims.begin());
    if (dims.size() != 2 || dims[1] != 1 || y[y.rank() - 2].number() != dims[0]) return {};
    Step step{"-row-bias", nullptr, true, fused_.attrs};
    step.input = &user_.graph().add_constant(other.constant()->reshaped(dims), other.name());
    step.attrs.set("has_bias", 1).set("row_bias", 1);
    return step;
  }

  std::optional<Step> take_residual(Value& other, std::string_view suffix, const char* use) {
    if (!fused_.attrs.has("residual") || residual() != "none" || user_.input(0) == user_.input(1)) return {};
    if (other.constant()) return {};
    if (!(extents_.of(other) == extents_.of(*fused_.output()))) {
      miss(suffix, "the shapes of '" + other.name() + "' and '" + fused_.output()->name() + "' may differ");
      return {};
    }
    Step step{suffix, &other, false, fused_.attrs};
    step.attrs.set("residual", use);
    return step;
  }

  /// y * what another layer computes of the same rows or pixels: the gates of SwiGLU, of StarNet, of large kernels.
  std::optional<Step> take_factor(Value& other) {
    std::optional<Step> step = take_residual(other, "-factor", "times");
    if (!step || !fused_.is("modelflow.Conv") || !quantizes_convolutions(context_.options)) return step;
    miss("-factor", "there are no factors of convolutions in 8 bits");
    return {};
  }

  /// y * number, y + number and the like after the activation; before it they belong into the weights.
  std::optional<Step> take_affine() {
    if (!active() || ends_in_residual() || !fused_.attrs.has("post_scale")) return {};
    const bool first = user_.input(0) == fused_.output();
    const std::optional<float> number = scalar(user_.input(first ? 1 : 0));
    if (!number || user_.input(0) == user_.input(1)) return {};
    if (!raises_no_rank(*user_.input(first ? 1 : 0))) return {};
    const std::optional<Affine> both = followed_by(*number, first);
    if (!both) {
      miss("-affine", "folding would overflow or lose digits");
      return {};
    }
    Step step{"-affine", nullptr, false, fused_.attrs};
    step.attrs.set("post_scale", Attr(both->scale)).set("post_shift", Attr(both->shift));
    return step;
  }

  struct Affine {
    float scale, shift;
  };

  /// What stands behind the activation, and then the user with this number behind it (`first`) or in front.
  std::optional<Affine> followed_by(float number, bool first) const {
    if (user_.is("Div") && !first) return {};
    const bool sum = user_.is("Add") || user_.is("Sub"), negates = user_.is("Sub") && !first;
    const double factor = user_.is("Mul") ? number : user_.is("Div") ? 1.0 / number : negates ? -1 : 1;
    const std::optional<float> scaled = folded_scale(scale(), factor);
    const double added = !sum ? 0.0 : user_.is("Sub") && first ? -static_cast<double>(number) : number;
    const std::optional<float> shifted = folded_shift(shift() * factor, added);
    return scaled && shifted ? std::optional(Affine{*scaled, *shifted}) : std::nullopt;
  }

  Node& fused_;
  Node& user_;
  Context& context_;
  Extents& extents_;
  std::string_view rule_;
};

}  // namespace

std::optional<float> scalar(const Value* value) {
  const Tensor* constant = value ? value->constant() : nullptr;
  if (!constant || constant->dtype() != DType::f32 || constant->elements() != 1) return {};
  return constant->as<float>()[0];
}

std::optional<Activation> activation_of(const Node& node) {
  const Attrs& attrs = node.attrs;
  if (node.is("modelflow.Activation"))
    return Activation{attrs.text("activation"), attrs.number("alpha"), attrs.number("beta")};
  for (const char* plain : {"Relu", "Sigmoid", "Tanh", "Mish"}) {
    if (node.is(plain)) return Activation{plain};
  }
  if (node.is("Clip")) return clip(node);
  if (node.is("Softplus")) return Activation{"Softplus"};
  if (node.is("Elu")) return Activation{"Elu", attrs.number("alpha", 1)};
  if (node.is("Selu"))
    return Activation{"Elu", attrs.number("alpha", 1.67326319f), 0, attrs.number("gamma", 1.05070102f)};
  if (node.is("LeakyRelu")) return Activation{"LeakyRelu", attrs.number("alpha", 0.01f)};
  if (node.is("HardSigmoid")) return Activation{"HardSigmoid", attrs.number("alpha", 0.2f), attrs.number("beta", 0.5f)};
  if (node.is("HardSwish")) return Activation{"HardSwish", 1.0f / 6, 0.5f};
  if (node.is("Gelu")) return Activation{attrs.text("approximate", "none") == "tanh" ? "GeluTanh" : "Gelu"};
  if (node.is("PRelu")) {
    if (const std::optional<float> slope = scalar(node.input(1))) return Activation{"LeakyRelu", *slope};
  }
  return {};
}

int absorb_epilogue(Node* fused, Context& context, Extents& extents, std::string_view rule) {
  int taken = 0;
  while (Node* user = only_reader(*fused->output())) {
    const std::optional<Step> step = Epilogue(*fused, *user, context, extents, rule).next();
    if (!step) break;
    const std::string name = std::string(rule) + std::string(step->suffix);
    if (context.options.disabled.contains(name)) break;
    Graph& graph = user->graph();
    std::vector<Value*> inputs = fused->inputs();
    if (step->input) {
      const bool residual = step->in_front_of_residual && fused->attrs.text("residual", "none") != "none";
      inputs.insert(step->is_bias ? inputs.begin() + 2 : inputs.end() - (residual ? 1 : 0), step->input);
    }
    Node* next = make_fused(graph, context, name, "modelflow." + fused->op(), std::move(inputs), step->attrs, *user);
    if (!next) break;
    next->name = fused->name;
    next->doc = fused->doc;
    extents.forget(*user->output());
    extents.forget(*fused->output());
    graph.replace(*user->output(), *next->output());
    graph.erase(*user);
    graph.erase(*fused);
    fused = next;
    context.hit(name);
    ++taken;
  }
  return taken;
}

}  // namespace modelflow::passes
