// What a fused op can do to its result before it is written (its epilogue).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "modelflow/pass.h"
#include "passes/graph/extents.h"

namespace modelflow::passes {

/// The attributes activation, alpha and beta of a fused op.
struct Activation {
  std::string kind;
  float alpha = 0, beta = 0;
  float scale = 1;  ///< behind it (Selu)
};

/// The activation that a standard node or modelflow.Activation computes from its input 0; nothing for other nodes and
/// for forms the fused ops do not have (Clip with computed bounds).
std::optional<Activation> activation_of(const Node& node);

/// A scalar constant's value; nothing when `value` is null, computed, or holds more than one element.
std::optional<float> scalar(const Value* value);

/// Takes the nodes after a fused Conv or MatMul into it, one by one: a bias, an activation, a residual of equal shape
/// added before or after the activation or multiplied after it, a lower bound behind LeakyRelu, a slope for each
/// channel (Conv), a scale and shift by numbers after it. `rule` names the hits: rule + "-bias", "-activation",
/// "-bound", "-slopes", "-residual", "-affine", "-factor". Returns how many nodes it took.
int absorb_epilogue(Node* fused, Context& context, Extents& extents, std::string_view rule);

}  // namespace modelflow::passes
