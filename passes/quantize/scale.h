// Scales and zero points, and what they make of numbers.
#pragma once

#include <cstdint>
#include <span>

#include "modelflow/pass.h"
#include "modelflow/target.h"
#include "modelflow/tensor.h"
#include "passes/graph/imported_weights.h"

namespace modelflow::passes {

/// real = scale * (quantized - zero_point).
struct Quantization {
  float scale = 1;
  int zero_point = 0;
  bool operator==(const Quantization&) const = default;
};

/// Asymmetric u8 for a range; 0 is exactly representable, and part of the range whether it was or not.
Quantization u8_of(Range range);

/// f32, and neither NaN nor infinities in it.
bool finite(const Tensor& tensor);

/// How weights are quantized besides their axis.
struct WeightQuantization {
  /// Cuts the largest weights off where that makes the squared error of a channel smaller.
  bool least_squares = false;
  /// Scales may not be smaller than these, one per channel; empty: no bound. See least_scales.
  std::span<const float> least_scales = {};
  /// Scales so large that neighbours of a channel (of two input channels in the same tap of a window) are bounded
  /// (src/core/bounded_pairs.h). See adds_pairs_in_16_bits.
  bool bounded_pairs = false;
};

/// CPUs whose instruction for products of 8-bit numbers, vpmaddubsw, adds up two of them in 16 bits, which do not hold
/// 2 * 255 * 127. ONNX Runtime uses it all the same; our kernels do where pairs of weights are bounded.
bool adds_pairs_in_16_bits(const Target& target);

/// `weights` is f32 of any rank above 0; a channel without weights other than 0 gets scale 1.
QuantizedWeights quantize_weights(const Tensor& weights, std::size_t axis, const WeightQuantization& how = {});

/// The scales of the weights below which a bias in steps of input_scale * weight_scale would leave 32 bits (with as
/// much room left for the products).
std::vector<float> least_scales(std::span<const float> bias, float input_scale);
/// i32 in steps of input_scale * weight_scales[m], saturated.
Tensor quantize_bias(const Tensor& bias, float input_scale, const Tensor& weight_scales);

}  // namespace modelflow::passes
