// Inputs that obligations are tried with: every symbol at several extents, plain numbers and those that few think of.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow::obligations {

struct Feed {
  std::string what;
  Feeds values;
};

/// Extents as they were, 1, none of the first axis, and drawn ones; numbers drawn, small integers, and some NaN, inf,
/// -0, denormals among them.
std::vector<Feed> feeds_of(const Model& model, std::mt19937_64& random);

/// Below it numbers of the type have fewer digits.
double smallest_normal(DType dtype);

/// Every number that is no small integer a last digit larger or smaller: what follows from that is noise.
Tensor jittered(const Tensor& tensor, bool integers_too, std::mt19937_64& random);

}  // namespace modelflow::obligations
