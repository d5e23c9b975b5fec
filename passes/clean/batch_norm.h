// BatchNormalization in inference as a scale and a shift per channel.
#pragma once

#include <vector>

#include "modelflow/pattern.h"

namespace modelflow::passes {

/// y = x * scale + shift, per channel of axis 1.
struct Affine {
  std::vector<double> scale, shift;
};

/// Binds "gamma", "beta", "mean", "var" and the node "bn".
Pattern batch_norm(Pattern x);
/// One output, no training, parameters of one size.
Verdict inference_form(const Match& m);
Affine affine_of(const Match& m);

}  // namespace modelflow::passes
