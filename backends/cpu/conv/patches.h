// Windows that lie side by side (patches of vision transformers): the convolution is a product of them.
#pragma once

#include <cstddef>

#include "backends/cpu/conv/problem.h"

namespace modelflow::cpu {

/// Whether x, in planes, falls apart into windows that share nothing and have no padding, each row of them long enough
/// to be copied by itself.
bool has_patches(const ConvProblem& p);

/// Floats that all patches take.
std::size_t patch_floats(const ConvProblem& p);

/// Copies every window to `to`, one behind the other, in the order kernel row, channel, kernel column, and gives the
/// product of these pixels with the filters. What a tile reads of a window is then one stream, and tiles go on over the
/// ends of rows.
ConvProblem product_of_patches(const ConvProblem& p, Invocation& call, float* to);

}  // namespace modelflow::cpu
