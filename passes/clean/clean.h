// The passes of the stage clean.
#pragma once

#include "modelflow/modelflow.h"
#include "modelflow/pass.h"

/// Level O1: clean-ups and foldings that use standard ONNX ops only. Every pass keeps the names, types and order of
/// graph inputs and outputs and changes results by no more than the rounding of folded constants. What each does, and
/// their order: clean.cpp.
namespace modelflow::passes {

Pass inline_functions();
Pass constant_nodes();
Pass prune();
Pass inline_branches();
Pass tolerated_forms();
Pass fold_shapes();
Pass settled_symbols();
Pass shape_sources();
Pass transpose_weights();
Pass fold_constants();
Pass identities();
Pass drop_expands();
Pass gathered_grids();
Pass gathered_windows();
Pass duplicates();
Pass chains();
Pass views();
Pass cut_transposes();
Pass instances_apart();
Pass split_batch_norm();
Pass fold_batch_norm();
Pass fold_affine();
Pass fold_pad();
Pass merge_parallel(const Options& options);
Pass move_strides();

}  // namespace modelflow::passes
