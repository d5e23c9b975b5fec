// ONNX text of the activations that fused ops have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/call_attrs.h"
#include "modelflow/attr.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// ONNX text of the nodes that compute `y` = activation(`x`) in standard ops of this opset, each followed by a newline:
/// "y = Relu (x)\n". Inner names start with `y` followed by "_". The attributes are those of the fused op
/// (activation, alpha, beta, and post_scale, post_shift: times and plus a number afterwards). "None" gives an Identity.
/// Throws Error(unsupported) when the opset cannot say it.
std::string activation_body(const CallAttrs& attrs, int opset, std::string_view x, std::string_view y);

/// The attributes of an op with those of an activation, at their defaults (none) where they are not among them.
Attrs with_activation(Attrs attrs);

/// Which of "alpha", "beta", "post_scale" and "post_shift" that text refers to with @.
std::vector<std::string> activation_attributes(const CallAttrs& attrs, int opset);

/// Refuses an unknown `activation`; used by infer of every op that has one.
Verdict check_activation(const CallAttrs& attrs);

/// A rank-0 float constant in ONNX text: "name = Constant <value = float {0.5}> ()\n", every bit kept.
std::string constant_text(std::string_view name, float value);

/// All values of the attribute `activation`.
const std::vector<std::string>& activation_names();

/// The attributes of an activation in samples and tests.
Attrs activation_sample(std::string_view activation);

}  // namespace modelflow::ops
