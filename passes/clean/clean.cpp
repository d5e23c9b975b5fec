// The stage clean, in running order: standard ops only, what O1 consists of.
#include "passes/clean/clean.h"

#include "passes/passes.h"

namespace modelflow::passes {

Stage clean(const Options& options) {
  return {.name = "clean",
          .passes =
              {
                  inline_functions(),   // calls of local functions -> their bodies
                  constant_nodes(),     // Constant nodes -> initializers
                  prune(),              // what nobody reads
                  inline_branches(),    // If with a constant condition -> the nodes of the branch
                  tolerated_forms(),    // what runs although ONNX forbids it -> what it means
                  fold_shapes(),        // shape arithmetic over known dims -> constants, 0 and -1
                  settled_symbols(),    // symbols that a Reshape allows one number -> this number, in all shapes
                  shape_sources(),      // extents of views and linear layers -> extents of what these were made of
                  transpose_weights(),  // Transpose of a constant -> the transposed constant (needs no runtime)
                  fold_constants(),     // nodes with constant inputs -> their results, evaluated by ONNX Runtime
                  identities(),         // nodes that change nothing
                  drop_expands(),       // Expand in front of ops that broadcast
                  gathered_grids(),     // GatherND of everything, in order -> Transpose, Unsqueeze
                  gathered_windows(),   // Gather of windows that move by one element -> Slices
                  duplicates(),         // equal initializers and equal nodes -> one
                  chains(),             // Transpose of Transpose, Reshape of Reshape, Cast of Cast, ... -> one node
                  views(),              // longer chains of Reshape and Transpose -> Reshape, Transpose, Reshape at most
                  cut_transposes(),     // Transpose, Slice, Transpose back -> Slice
                  instances_apart(),    // BatchNormalization of images and channels joined by Reshapes -> without them
                  split_batch_norm(),   // BatchNormalization behind a Concat of convolutions, to each of them
                  fold_batch_norm(),    // BatchNormalization into the linear op before or after it
                  fold_affine(),        // Mul, Div, Add, Sub by constants into the linear op before or after it
                  fold_pad(),           // Pad into Conv and pooling
                  merge_parallel(options),  // convolutions of one input whose results are added -> one
                  move_strides(),           // the stride of 1x1 convolutions into the convolution before
                  prune(),                  // what the others left unread
              },
          .repeat = true};
}

}  // namespace modelflow::passes
