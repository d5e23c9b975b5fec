// How much of what a convolution reads is padding, for kernels that treat it like the image.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// How many of the numbers that windows read lie in the image and not in its padding; 1 where extents are unknown.
double inside_share(const Call& call);

/// Kernels that copy the image with its padding ask this: no where the copy is much larger than the image and all that
/// windows read of it.
Verdict accepts_copy(const Call& call);

}  // namespace modelflow::cpu
