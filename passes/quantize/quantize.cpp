#include "passes/quantize/quantize.h"

#include <algorithm>
#include <iterator>

namespace modelflow::passes {
namespace {

std::vector<Pass> as(Precision precision, Options options) {
  options.precision = precision;
  return quantizing(options);
}

}  // namespace

bool needs_ranges(const Options& options) {
  return options.precision == Precision::i8 || (options.precision == Precision::automatic && options.calibration);
}

bool mixes_bf16(const Options& options) {
  return options.precision == Precision::automatic && options.target.has(Isa::avx512_bf16) &&
         options.level == Level::O2;
}

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
    case Precision::automatic: {
      std::vector<Pass> passes = as(needs_ranges(options) ? Precision::i8 : Precision::i8_dynamic, options);
      if (mixes_bf16(options)) std::ranges::move(as(Precision::bf16, options), std::back_inserter(passes));
      return passes;
    }
    case Precision::bf16:
      return {to_bfloat16(), attention_to_bfloat16()};
    case Precision::bf16_weights:
      return {to_bfloat16()};
    default:
      return {};
  }
}

}  // namespace modelflow::passes
