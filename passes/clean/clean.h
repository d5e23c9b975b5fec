#pragma once

#include <vector>

#include "modelflow/pass.h"

/// Level O1: clean-ups and foldings that use standard ONNX ops only. Every pass keeps the names, types and order of
/// graph inputs and outputs and changes results by no more than the rounding of folded constants.
namespace modelflow::passes {

Pass constant_nodes();     ///< Constant nodes -> initializers
Pass fold_constants();     ///< nodes with constant inputs -> their results, evaluated by ONNX Runtime
Pass transpose_weights();  ///< Transpose of a constant -> the transposed constant (needs no runtime)
Pass fold_shapes();        ///< shape arithmetic over known dims -> constants, 0 and -1
Pass shape_sources();      ///< extents of views and linear layers -> extents of what these were made of
Pass identities();         ///< nodes that change nothing
Pass drop_expands();       ///< Expand in front of ops that broadcast
Pass chains();             ///< Transpose of Transpose, Reshape of Reshape, Cast of Cast, ... -> one node
Pass views();              ///< longer chains of Reshape and Transpose -> Reshape, Transpose, Reshape at most
Pass duplicates();         ///< equal initializers and equal nodes -> one
Pass instances_apart();    ///< BatchNormalization between Reshapes that join images and channels -> without them
Pass fold_batch_norm();    ///< BatchNormalization into the linear op before or after it
Pass fold_affine();        ///< Mul, Div, Add, Sub by constants into the linear op before or after it
Pass fold_pad();           ///< Pad into Conv and pooling
Pass move_strides();       ///< the stride of 1x1 convolutions into the convolution before
Pass inline_functions();   ///< calls of local functions -> their bodies
Pass inline_branches();    ///< If with a constant condition -> the nodes of the branch
Pass prune();              ///< what nobody reads

/// All of the above in running order; meant to be repeated until nothing changes.
std::vector<Pass> clean();

}  // namespace modelflow::passes
