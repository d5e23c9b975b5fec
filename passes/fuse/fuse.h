// The passes of the stage fuse.
#pragma once

#include "modelflow/pass.h"

/// Level O2: many nodes become one fused op. Fused ops that are one node in another spelling come from normalize
/// (Activation, LayerNorm, GroupNorm), forms in lower precision from quantize, and what only layout needs from layout
/// (ConvTranspose, Concat and pooling channels last, Quantize, Dequantize). What each pass does, and their order:
/// fuse.cpp.
namespace modelflow::passes {

Pass fuse_rotary();
Pass fuse_channel_attention();
Pass fuse_talking_heads();
Pass normalized_heads();
Pass fuse_attention();
Pass split_products();
Pass fuse_conv();
Pass fuse_batch_norm();
Pass fuse_matmul();
Pass left_products();
Pass fuse_recurrent();
Pass fuse_squeeze_excite();
Pass fuse_embedding();
Pass fuse_column_embedding();
Pass fuse_scatter_add();
Pass fuse_layer_norm();
Pass fuse_group_norm();
Pass fuse_softmax();
Pass fuse_reduce();
Pass fuse_resize();
Pass fuse_pointwise();
Pass open_programs();
Pass fuse_pointwise_scan();

}  // namespace modelflow::passes
