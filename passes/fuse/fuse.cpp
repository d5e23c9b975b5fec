// The stage fuse, in running order: many nodes become one fused op.
#include "passes/fuse/fuse.h"

#include "passes/clean/clean.h"
#include "passes/normalize/normalize.h"
#include "passes/passes.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {

Stage fuse(const Options&) {
  return {.name = "fuse",
          .passes = {
              fuse_pointwise_scan(),     // steps of a recurrence, before anything else takes a part of one
              fuse_rotary(),             // rotary position embedding, which attention then leaves outside
              fuse_channel_attention(),  // attention over channels, which would be one of tokens behind Transposes
              fuse_talking_heads(),      // attention whose heads are mixed, before its projections are split
              normalized_heads(),        // what would keep attention from reading heads where they are made
              fuse_attention(),          // products around a softmax and their projections, before these are products
              split_products(),          // of which no attention took the whole
              normalize_linear(),        // layers whose rows attention gives in another order than they are wanted in
              duplicates(),              // parts of products that are one and the same
              fold_affine(),             // what follows only a part: the 1 of 1 + scale in a diffusion transformer
              fuse_conv(),               // Conv, then what follows it: bias, activation, residual
              fuse_batch_norm(),         // what no weights took, in front of these convolutions
              fuse_matmul(),             // MatMul and Gemm, their transposes and scale, then the same epilogue
              left_products(),           // a layer over tokens, which stands between Transposes
              fuse_recurrent(),          // LSTM and GRU over whole sequences
              fuse_squeeze_excite(),     // the block around two 1x1 convolutions, which are fused already
              fuse_embedding(),          // looked up rows, their sum and its LayerNorm, before that takes the sum
              fuse_column_embedding(),   // categorical features, each with a table of its own
              fuse_scatter_add(),        // sums over the neighbours of graph networks
              fuse_layer_norm(),         // a residual sum in front of LayerNorm that no convolution or product took
              fuse_group_norm(),         // an activation behind GroupNorm
              fuse_softmax(),            // what attention left, with the scale that no product took
              fuse_reduce(),             // a reduction and what stands around it
              fuse_resize(),             // interpolation of images, for the layout to choose where channels are
              fuse_pointwise(),          // the elementwise ops that are left
              fuse_quantized(),  // in models that arrive quantized: DequantizeLinear, op, QuantizeLinear -> one op
              keep_float(),      // and what of them none of these took
          }};
}

}  // namespace modelflow::passes
