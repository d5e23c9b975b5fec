// The epilogue of a matrix product as oneDNN's post-ops.
#pragma once

#include "backends/cpu/onednn/onednn.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::cpu {

/// What follows a product in both of its forms: residual and activation in the order that the op gives them, on a
/// result like `y`, and the scratchpad from the caller.
dnnl::primitive_attr product_attr(ops::MatMulAttrs::Residual residual, const ActivationSpec& activation,
                                  const dnnl::memory::desc& y);

}  // namespace modelflow::cpu
