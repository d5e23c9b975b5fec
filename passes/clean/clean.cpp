#include "passes/clean/clean.h"

#include "passes/passes.h"

namespace modelflow::passes {

std::vector<Pass> clean() {
  return {
      constant_nodes(), prune(),  inline_branches(), fold_shapes(), transpose_weights(), fold_constants(), identities(),
      duplicates(),     chains(), fold_batch_norm(), fold_affine(), fold_pad(),          prune(),
  };
}

Stage clean(const Options&) { return {.name = "clean", .passes = clean(), .repeat = true}; }

}  // namespace modelflow::passes
