// Image tensors as kernels of a GPU see them.
#pragma once

#include "backends/cuda/launches/pixels.h"
#include "backends/cuda/places.h"

namespace modelflow::cuda {

/// x of rank 3 or more, its channels last or second. Throws Error(invalid_input) naming the op.
Image image_of(const char* op, const View& x, bool last);
/// How many parts of `length` elements, of which there are `units`, keep a device busy.
std::int64_t parts_of(std::int64_t units, std::int64_t length);

}  // namespace modelflow::cuda
