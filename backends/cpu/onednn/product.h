// The epilogue of a product or convolution as oneDNN's post-ops.
#pragma once

#include "backends/cpu/onednn/onednn.h"
#include "backends/ops/residual.h"

namespace modelflow::cpu {

/// Residual and activation in the order that the op gives them, on a result like `y`, and the scratchpad from the
/// caller.
dnnl::primitive_attr product_attr(ops::Residual residual, const ActivationSpec& activation,
                                  const dnnl::memory::desc& y);

}  // namespace modelflow::cpu
