// BatchNormalization in inference as a scale and a shift per channel.
#pragma once

#include <vector>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

namespace modelflow::passes {

/// y = x * scale + shift, per channel of axis 1.
struct Affine {
  std::vector<double> scale, shift;
};

/// A BatchNormalization of one output, without training, with constant parameters of one size.
Verdict inference_form(const Node& bn);
Affine affine_of(const Node& bn);

}  // namespace modelflow::passes
