// Extents of convolutions on a GPU, in whatever type of numbers.
#pragma once

#include "backends/cuda/launches/products.h"
#include "backends/ops/conv_attrs.h"

namespace modelflow::cuda {

/// Fills in extents and strides from those of the weights [filters, channels of a group, ...] and of x; axes that are
/// not there have one place. Gives the dims of y. Throws Error(invalid_input) naming the op.
Dims read_geometry(const char* op, const ops::ConvAttrs& conv, const Dims& weights, std::span<const std::int64_t> x,
                   ConvLaunch& c);

/// Whether tensor cores multiply it, which take rows of channels: there are no groups, and channels are last.
inline bool dense(const ops::ConvAttrs& conv) { return conv.group == 1 && conv.x_last; }

/// A no for weights that kernels do not take: those that are not constant or of more than three axes.
Verdict accepts_filters(const Operand& w, const ops::ConvAttrs& conv);

}  // namespace modelflow::cuda
