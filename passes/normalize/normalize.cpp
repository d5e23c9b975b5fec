#include "passes/normalize/normalize.h"

namespace modelflow::passes {

std::vector<Pass> normalize() {
  return {
      raise_opset(),      widen_float16(),   normalize_activations(), normalize_linear(),
      normalize_einsum(), normalize_norms(), normalize_softmax(),
  };
}

}  // namespace modelflow::passes
