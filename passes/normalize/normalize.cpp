// The stage normalize, in running order: the many spellings that exporters emit become one.
#include "passes/normalize/normalize.h"

#include "passes/passes.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {

Stage normalize(const Options&) {
  return {.name = "normalize",
          .passes =
              {
                  raise_opset(),            // opset 7 to 12 -> 13 where lower precision is asked for or arrives
                  normalize_qoperator(),    // QLinearConv, QLinearMatMul, MatMulInteger -> the Q/DQ form
                  import_quantized(),       // weights that arrive in 8 bits -> float constants that remember them
                  widen_float16(),          // float16 -> float32 with a Cast at each float16 input and output, for CPUs
                  normalize_spectra(),      // STFT and DFT of constant length -> products with a constant basis
                  normalize_activations(),  // decomposed activations -> one node: standard where the opset has it
                  drop_unit_axes(),         // convolutions over more axes than they work along -> over those alone
                  lift_activations(),       // activations behind the views of a convolution -> in front of them
                  pad_constant_rows(),      // class tokens in front of patches, and positions -> Pad and one sum
                  sum_stacked(),            // sums over stacked values -> sums of products, without the stack
                  normalize_linear(),       // products between reshapes and transposes -> on all dims, without these
                  normalize_einsum(),       // Einsum that is a matrix product -> Transpose and MatMul
                  scattered_rows(),         // rows that are written one behind the other -> Concat
                  selective_scan(),         // steps of a selective state space model -> SelectiveScan (ours)
                  normalize_norms(),        // layer, RMS, group, instance normalization -> LayerNorm, GroupNorm (ours)
                  normalize_softmax(),      // exponentials over their sum, their logarithms -> Softmax, LogSoftmax
                  widen_over_blocks(),      // a convolution over blocks of an image (Focus) -> one over the image
                  reorder_subpixels(),      // DepthToSpace behind a convolution -> the mode that moves less
                  group_convolutions(),     // Split, convolutions, Concat -> a convolution in groups
                  shuffle_channels(),       // channels in turn from groups of them -> one Gather
                  recurrent_loops(),        // a Loop or Scan over the steps of an LSTM or a GRU -> the standard op
                  merge_directions(),       // two LSTM, GRU or RNN nodes, one for each direction -> one for both
                  unroll_loops(),           // loops of a few steps -> their steps
              },
          .repeat = true};
}

}  // namespace modelflow::passes
