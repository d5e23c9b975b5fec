// The stage equalize, in running order: float32 still, but ready to lose less in 8 bits.
#include "passes/equalize/equalize.h"

#include "passes/passes.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {

Stage equalize(const Options& options) {
  Stage stage{.name = "equalize", .passes = {}};
  // Every number in bfloat16 has an exponent of its own: unlike sizes cost it nothing.
  const Precision p = options.precision;
  if (p == Precision::f32 || p == Precision::bf16 || p == Precision::bf16_weights) return stage;
  // Weights alone would only get harder to round.
  if (in_weights_alone(options) && half_type(options) != DType::undefined) return stage;
  stage.passes = {
      equalize_convolutions(),  // between two convolutions
      equalize_products(),      // between a normalization or a product and the products that read it ("SmoothQuant")
  };
  return stage;
}

}  // namespace modelflow::passes
