// The stage layout, in running order: one memory order for whole connected parts of the graph ("islands").
#include "passes/layout/layout.h"

#include "passes/clean/clean.h"
#include "passes/fuse/fuse.h"
#include "passes/passes.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {

Stage layout(const Options& options) {
  Stage stage{.name = "layout",
              .passes = {
                  channels_last(),   // chooses the islands by minimum cut and rewrites them
                  innermost_axis(),  // Transposes that take rows of pixels apart and put them together again
                  views(),  // before a convolution absorbs a Transpose that rows of pixels (SegFormer) need no more
                  left_products(),       // layers over tokens behind Transposes that layout made
                  quantized_borders(),   // what rounds to 8-bit numbers and back where these begin and end
                  absorb_transposes(),   // a Transpose beside an op that reads or writes either order -> an attribute
                  fuse_layer_norm(),     // sums between which and a LayerNorm a Transpose stood
                  open_programs(),       // elementwise ops between which and a product a Transpose stood
                  absorb_activations(),  // what follows an op that only layout makes, or that a Transpose followed
                  absorb_pre_activations(),  // what stands in front of a convolution of single pixels
                  absorb_upsamples(),        // repeated pixels that a Concat reads
                  plain_concats(),           // more kinds of them than their op has names
                  unit_transposes(),         // Transposes that move nothing
                  pick_slices(),             // Slice and Squeeze that pick one element
              }};
  if ((options.precision == Precision::bf16 && half_type(options) == DType::undefined) || mixes_bf16(options))
    stage.passes.push_back(bf16_values());  // what lies between ops in bfloat16, some of which layout made
  return stage;
}

}  // namespace modelflow::passes
