#pragma once

#include <optional>
#include <vector>

#include "modelflow/pattern.h"

namespace modelflow::passes {

std::vector<Rule> layer_norm_rules();   ///< every spelling of layer and RMS normalization
std::vector<Rule> group_norm_rules();   ///< group and instance normalization
std::vector<Rule> norm_affine_rules();  ///< the scale and the shift behind either

/// Some adjacent axes of a tensor and their extents.
struct Axes {
  std::size_t rank = 0, first = 0;
  Dims dims;
};

/// The numbers of `c`, which broadcasts with a tensor, one for each place on these axes; nullopt when they vary along
/// other axes, too, or `c` would enlarge the tensor.
std::optional<std::vector<float>> spread(const Tensor& c, const Axes& axes);

/// `value` as scale or bias over these axes: a constant is spread, anything else must have their shape already (null
/// when it has not).
Value* over_axes(Build& build, Value& value, const Axes& axes);

/// A constant of this number on these axes.
Value& filled(Build& build, const Axes& axes, float number);

}  // namespace modelflow::passes
