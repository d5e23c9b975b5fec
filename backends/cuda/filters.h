// Weights of convolutions in the order in which kernels of a GPU read them.
#pragma once

#include "modelflow/tensor.h"

namespace modelflow::cuda {

/// Weights [a, b, place of the window ...] in the order [a, place, b], or [place, b, a] where `first_to_last` says so.
/// The dims stay as they are. Of a matrix [a, b] that is [b, a]. A Conv has filters in front of channels, a
/// ConvTranspose channels in front of filters.
Tensor turned(const Tensor& w, bool first_to_last);

}  // namespace modelflow::cuda
