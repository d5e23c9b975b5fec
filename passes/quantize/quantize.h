// The passes of the stage quantize.
#pragma once

#include <string>
#include <vector>

#include "modelflow/modelflow.h"

/// Lower precision, on the fused graph: first Q/DQ pairs of standard ops, then quantized ops where DQ, op and Q meet.
namespace modelflow::passes {

/// For models that arrive quantized; in the stage normalize, at every precision.
Pass import_quantized();
Pass place_quantizers();    ///< QuantizeLinear and DequantizeLinear around what gains from them; needs Context::ranges
Pass fuse_quantized();      ///< DequantizeLinear, op, QuantizeLinear -> the quantized op
Pass keep_float();          ///< in models that arrive quantized: what no op in 8 bits took
Pass quantize_products();   ///< products by constants: weights in 8 or 4 bits, activations quantized row by row
Pass quantize_recurrent();  ///< LSTM and GRU in the same way
Pass quantize_attention();  ///< attention: queries, keys and values as they come
Pass to_bfloat16();         ///< products and convolutions by constants: weights in bfloat16
Pass attention_to_bfloat16();
Pass to_half(DType half);  ///< for GPUs: values between ops, and weights, in float16 or bfloat16
Pass weight_only();        ///< then weights of products in 8 or 4 bits
Pass bf16_values();        ///< what lies between these too; behind layout, which makes some of the ops
/// Weights of products again, rounded so that errors of inputs that go together cancel; needs Context::plan's
/// roundings.
Pass compensate_rounding();
Pass correct_bias();  ///< of quantized ops, by what rounding costs their means; needs Context::plan's bias_shifts

/// Whether ranges of activations are asked for: samples have to be there.
bool needs_ranges(const Options& options);
/// Whether 8 or 4 bits are for weights only, and activations stay floats.
bool in_weights_alone(const Options& options);
/// Whether ops that do not run in 8 bits may run in bfloat16.
bool mixes_bf16(const Options& options);

/// The float32 values that calibration has to watch for place_quantizers().
std::vector<std::string> values_to_observe(const Graph& graph);

}  // namespace modelflow::passes
