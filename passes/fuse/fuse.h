#pragma once

#include <vector>

#include "modelflow/pass.h"

/// Level O2: many nodes become one fused op. The only stage that makes modelflow.Conv and modelflow.MatMul.
namespace modelflow::passes {

Pass fuse_conv();    ///< Conv, then what follows it: bias, activation, residual sum
Pass fuse_matmul();  ///< MatMul and Gemm, their transposes and scale, then the same epilogue

std::vector<Pass> fuse();

}  // namespace modelflow::passes
