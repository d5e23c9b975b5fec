#pragma once

#include <vector>

#include "modelflow/pass.h"

/// Level O2: many nodes become one fused op. The only stage that makes fused ops out of several nodes.
namespace modelflow::passes {

Pass fuse_rotary();          ///< rotary position embedding; before fuse_attention
Pass fuse_attention();       ///< products around a softmax and their projections; before fuse_matmul
Pass fuse_conv();            ///< Conv, then what follows it: bias, activation, residual sum
Pass fuse_matmul();          ///< MatMul and Gemm, their transposes and scale, then the same epilogue
Pass fuse_recurrent();       ///< LSTM and GRU over whole sequences
Pass fuse_squeeze_excite();  ///< the block around two 1x1 convolutions; after fuse_conv
Pass fuse_softmax();         ///< what fuse_attention left; after fuse_matmul, which takes scales
Pass fuse_reduce();          ///< a reduction and what stands around it; before fuse_pointwise
Pass fuse_pointwise();       ///< the elementwise ops that are left
Pass fuse_embedding();       ///< looked up rows, their sum and its LayerNorm; before fuse_layer_norm
Pass fuse_layer_norm();      ///< a residual sum in front of LayerNorm; after fuse_conv and fuse_matmul
Pass fuse_group_norm();      ///< an activation behind GroupNorm

std::vector<Pass> fuse();

}  // namespace modelflow::passes
