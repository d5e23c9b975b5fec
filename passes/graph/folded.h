// Constants in place of several that were folded into one another.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "modelflow/tensor.h"

/// Constants in place of several that were folded into one another: what every rule that multiplies or adds constants
/// asks. A result must not overflow, vanish or lose digits where the model as it stands does not.
namespace modelflow::passes {

/// Scales whose product with what a model computes stays in the range of float32: none is larger than 2^64, and the
/// largest is not below 2^-64, unless all are 0. A channel that is as good as dead does not speak for the others.
bool ordinary(std::span<const double> scales);
/// The same of a constant of float32.
bool ordinary(const Tensor& scales);

/// a * b as one scale in place of two; nothing where one of the three is not ordinary.
std::optional<float> folded_scale(double a, double b);
/// a + b in place of adding one after the other; nothing where the sum is not finite or both cancel: a number that is
/// added and taken away again rounds what it is added to.
std::optional<float> folded_shift(double a, double b);
/// The same of as many numbers; one of either may stand for all.
bool cancels(std::span<const double> a, std::span<const double> b);

/// float32 or float64: what constants are folded in.
bool foldable_float(DType dtype);
/// A new tensor of `dtype` (see foldable_float) from doubles; nullopt when a value is not finite in that type, or so
/// little is left of all of them that digits get lost.
std::optional<Tensor> from_doubles(DType dtype, Dims dims, const std::vector<double>& values);

}  // namespace modelflow::passes
