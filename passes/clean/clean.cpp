#include "passes/clean/clean.h"

namespace modelflow::passes {

std::vector<Pass> clean() {
  return {
      inline_functions(),
      constant_nodes(),
      prune(),
      inline_branches(),
      fold_shapes(),
      shape_sources(),
      transpose_weights(),
      fold_constants(),
      identities(),
      drop_expands(),
      duplicates(),
      chains(),
      views(),
      instances_apart(),
      fold_batch_norm(),
      fold_affine(),
      fold_pad(),
      move_strides(),
      prune(),
  };
}

}  // namespace modelflow::passes
