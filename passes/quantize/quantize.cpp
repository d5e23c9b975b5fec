// The stage quantize, for each precision in running order.
#include "passes/quantize/quantize.h"

#include <algorithm>
#include <iterator>

#include "passes/passes.h"

namespace modelflow::passes {
namespace {

std::vector<Pass> in_8_bits() {
  return {
      place_quantizers(),    // QuantizeLinear and DequantizeLinear around what gains from them
      fuse_quantized(),      // DequantizeLinear, op, QuantizeLinear -> the quantized op
      quantize_products(),   // products by constants, activations quantized row by row
      quantize_recurrent(),  // LSTM and GRU in the same way
      quantize_attention(),  // attention: queries, keys and values as they come
      correct_bias(),        // by what rounding costs the means of the ops above
  };
}

/// On a GPU, where what is not in fewer bits is in 16.
std::vector<Pass> beside_half(Precision precision, DType half) {
  std::vector<Pass> passes;
  if (precision == Precision::i8) passes = in_8_bits();
  passes.push_back(to_half(half));
  if (precision == Precision::i8_weights || precision == Precision::i4_weights) passes.push_back(weight_only());
  if (precision == Precision::i4_weights) passes.push_back(compensate_rounding());
  return passes;
}

std::vector<Pass> quantizing(Precision precision, const Options& options) {
  if (const DType half = half_type(options); half != DType::undefined) return beside_half(precision, half);
  switch (precision) {
    case Precision::i8:
      return in_8_bits();
    case Precision::i8_dynamic:
      return {quantize_products(), quantize_recurrent(), quantize_attention()};
    case Precision::i8_weights:
      return {quantize_products(), quantize_recurrent()};
    case Precision::i4_weights:
      // In 8 bits the weights' errors are small beside those of the activations, and this takes longer than all else.
      return {quantize_products(), quantize_recurrent(), compensate_rounding()};
    case Precision::automatic: {
      const Precision low = needs_ranges(options) ? Precision::i8 : Precision::i8_dynamic;
      std::vector<Pass> passes = quantizing(low, options);
      if (mixes_bf16(options)) std::ranges::move(quantizing(Precision::bf16, options), std::back_inserter(passes));
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

}  // namespace

Stage quantize(const Options& options) {
  return {.name = "quantize", .passes = quantizing(options.precision, options)};
}

bool needs_ranges(const Options& options) {
  return options.precision == Precision::i8 || (options.precision == Precision::automatic && options.calibration);
}

bool in_weights_alone(const Options& options) {
  return options.precision == Precision::i8_weights || options.precision == Precision::i4_weights;
}

bool mixes_bf16(const Options& options) {
  return options.precision == Precision::automatic && options.target.has(Isa::avx512_bf16) &&
         options.level == Level::O2;
}

}  // namespace modelflow::passes
