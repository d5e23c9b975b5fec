// Activations as nodes, and rules for their spellings.
#include "passes/normalize/activations.h"

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

namespace {

/// The bounds are attributes before opset 11 and inputs from then on.
Value& clip(Build& build, Value& x, float low, float high) {
  if (build.opset() < 11) return build.op("Clip", {&x}, {{"min", low}, {"max", high}});
  return build.op("Clip",
                  {&x, &build.constant(Tensor::scalar(low), "low"), &build.constant(Tensor::scalar(high), "high")});
}

}  // namespace

Value& make_activation(Build& build, Value& x, const ActivationNode& activation) {
  const std::string& kind = activation.kind;
  const int opset = build.opset();
  if (kind == "Relu" || kind == "Softplus") return build.op(kind, {&x});
  if (kind == "Clip") return clip(build, x, activation.alpha, activation.beta);
  if (kind == "LeakyRelu") return build.op("LeakyRelu", {&x}, {{"alpha", activation.alpha}});
  if (kind == "HardSigmoid")
    return build.op("HardSigmoid", {&x}, {{"alpha", activation.alpha}, {"beta", activation.beta}});
  if (kind == "Gelu" && opset >= 20) return build.op("Gelu", {&x});
  if (kind == "GeluTanh" && opset >= 20) return build.op("Gelu", {&x}, {{"approximate", std::string("tanh")}});
  if (kind == "Mish" && opset >= 18) return build.op("Mish", {&x});
  const bool usual = activation.alpha == 1.0F / 6 && activation.beta == 0.5F;
  if (kind == "HardSwish" && opset >= 14 && usual) return build.op("HardSwish", {&x});
  return build.op("modelflow.Activation", {&x},
                  {{"activation", kind}, {"alpha", activation.alpha}, {"beta", activation.beta}});
}

namespace {

/// Fused ops compute in float32, and the numbers of the formula must not enlarge x.
Verdict elementwise_of_x(const Match& m) {
  const Value& x = m.value("x");
  if (x.dtype() != DType::f32) return no("it is not float32", x.name());
  const std::size_t rank = rank_of(&x).value_or(0);
  for (const Node* node : m.nodes())
    for (const Value* input : node->inputs())
      if (input && input->constant() && (input->constant()->elements() != 1 || input->constant()->rank() > rank))
        return no("the constant is no single number, or may enlarge its partner", input->name());
  return yes();
}

}  // namespace

void add_spellings(std::vector<Rule>& rules, std::string_view name, std::string_view doc,
                   const std::vector<Pattern>& spellings, const Meaning& meaning, std::vector<Condition> when) {
  when.insert(when.begin(), elementwise_of_x);
  for (const Pattern& from : spellings)
    rules.push_back({std::string(name), std::string(doc), from, when, [meaning](const Match& m, Build& build) {
                       return std::vector<Value*>{&make_activation(build, m.value("x"), meaning(m))};
                     }});
}

Pass normalize_activations() {
  std::vector<Rule> rules = gelu_rules();
  for (std::vector<Rule> more : {gate_rules(), piecewise_linear_rules()})
    rules.insert(rules.end(), more.begin(), more.end());
  return rewrite("normalize-activations", "Finds activations that exporters wrote as several nodes.", std::move(rules));
}

}  // namespace modelflow::passes
