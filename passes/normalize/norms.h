// Scales and biases of normalizations, spread over the axes that they belong to.
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

/// Square root of the mean square of `deviation` plus epsilon, and its inverse, however they are written. Binds
/// `epsilon`.
struct Spreads {
  Pattern root, inverse;
};
Spreads spreads(const Pattern& deviation);
/// The mean over some axes, which stay.
Pattern mean(Pattern x);
/// x * (rsqrt * gamma) + (beta - mean * rsqrt * gamma), as TensorFlow writes it. Binds `gamma`, `beta`, `epsilon`.
Pattern tensorflow_norm(const Pattern& x);
/// The axes, in order, that every mean of the match is taken over; nullopt when they differ or are not known.
std::optional<Ints> mean_axes(const Match& m);
/// Epsilon is one number, not below 0.
Verdict small_number(const Match& m);

}  // namespace modelflow::passes
