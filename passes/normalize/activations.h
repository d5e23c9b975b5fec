// Activations as the fused ops spell them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/pattern.h"

namespace modelflow::passes {

/// An activation as the fused ops spell it.
struct ActivationNode {
  std::string kind;
  float alpha = 0, beta = 0;
};

/// The activation on `x` as one node: the standard op when this opset has one of its own, else modelflow.Activation.
Value& make_activation(Build& build, Value& x, const ActivationNode& activation);

using Meaning = std::function<ActivationNode(const Match&)>;

/// One rule per spelling, all of the same name: x in the pattern is the input. What `meaning` reads of the match has
/// passed `when`.
void add_spellings(std::vector<Rule>& rules, std::string_view name, std::string_view doc,
                   const std::vector<Pattern>& spellings, const Meaning& meaning, std::vector<Condition> when = {});

std::vector<Rule> gelu_rules();  ///< Gelu by Erf and by Tanh
std::vector<Rule> gate_rules();  ///< SiLU, QuickGelu, Mish, HardSwish, HardSigmoid: x times or a function of a gate
std::vector<Rule> piecewise_linear_rules();  ///< LeakyRelu, Relu, Clip from PRelu, Max, Min, Where and each other

}  // namespace modelflow::passes
