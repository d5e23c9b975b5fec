// How much rounding alone can move the results of a model.
#pragma once

#include "modelflow/model.h"

namespace modelflow::fuzz {

/// The model with every float that a node makes or reads from outside multiplied by 1 + u, u random and at most
/// `steps` halves of a last digit: the results of two such models differ as two correct orders of the same sums do,
/// through all that comes behind. Null deviations, NaN and infinities stay what they are.
Model with_noise(const Model& model, double steps, std::uint64_t seed);

/// The same for results of lower precision: what products (matrix products, convolutions, recurrent layers) read is
/// moved by up to `share` of its largest magnitude; `steps`: it is rounded to steps of twice that instead, and so is
/// what the products make, for small numbers become 0 that way (opset 11 on; before, it is moved).
Model with_coarse_products(const Model& model, double share, std::uint64_t seed, bool steps);

}  // namespace modelflow::fuzz
