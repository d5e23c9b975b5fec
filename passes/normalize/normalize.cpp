#include "passes/normalize/normalize.h"

#include "passes/quantize/quantize.h"

namespace modelflow::passes {

std::vector<Pass> normalize() {
  return {
      raise_opset(),           normalize_qoperator(), import_quantized(),  widen_float16(),      normalize_spectra(),
      normalize_activations(), lift_activations(),    normalize_linear(),  normalize_einsum(),   normalize_norms(),
      normalize_softmax(),     drop_unit_axes(),      widen_over_blocks(), group_convolutions(), recurrent_loops(),
      merge_directions(),      unroll_loops(),
  };
}

}  // namespace modelflow::passes
