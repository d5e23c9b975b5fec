#include "passes/quantize/quantize.h"

namespace modelflow::passes {

std::vector<Pass> quantizing(const Options& options) {
  switch (options.precision) {
    case Precision::i8:
      return {place_quantizers(),   fuse_quantized(),     quantize_products(),
              quantize_recurrent(), quantize_attention(), correct_bias()};
    case Precision::i8_dynamic:
      return {quantize_products(), quantize_recurrent(), quantize_attention()};
    case Precision::i8_weights:
      return {quantize_products(), quantize_recurrent()};
    case Precision::i4_weights:
      // In 8 bits the weights' errors are small beside those of the activations, and this takes longer than all else.
      return {quantize_products(), quantize_recurrent(), compensate_rounding()};
    case Precision::bf16:
      return {to_bfloat16(), attention_to_bfloat16()};
    case Precision::bf16_weights:
      return {to_bfloat16()};
    default:
      return {};
  }
}

}  // namespace modelflow::passes
