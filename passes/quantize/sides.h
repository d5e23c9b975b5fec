// What an op in 8 bits reads and writes, its two sides: the value and its quantization parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "modelflow/pass.h"
#include "passes/quantize/scale.h"

/// What merging DequantizeLinear, an op and QuantizeLinear asks whatever the op is.
namespace modelflow::passes {

/// One side of a quantized op, an input or an output: the u8 value, its scale and zero point, and the constants that
/// these come from.
struct Side {
  Value* value = nullptr;
  Value *scale = nullptr, *zero_point = nullptr;
  Quantization q;
};

/// `value` as this QuantizeLinear or DequantizeLinear has it.
std::optional<Side> side(Value* value, const Node& pair);
/// What stands behind DequantizeLinear.
std::optional<Side> read_side(const Value* value);
/// The QuantizeLinear that alone reads `value`.
std::optional<Side> write_side(const Value* value);
/// Attributes `name`_scale and `name`_zero_point.
void set(Attrs& attrs, const std::string& name, const Quantization& q);

/// Between neighbours in 8 bits an op has pairs on all sides, also when it is itself to stay as it is.
bool stays_float(const Node& node, const Context& context);

/// Weights as they arrived, else (where lower precision is asked for) quantized now; `least`: see least_scales.
std::optional<QuantizedWeights> weights_of(Value& weights, const Context& context, std::size_t axis,
                                           std::span<const float> least = {});
/// The inputs of a convolution in 8 bits: x, weights, their scales and the bias (null: 0) in 32 bits. `axis`: that of
/// the output channels in the weights. Nothing where the weights do not allow it, or a bias that arrived would move
/// the result by more than a small part of a step of y.
std::optional<std::vector<Value*>> conv_inputs(Graph& graph, const Side& x, Value& weights, std::size_t axis,
                                               const Tensor* bias, float y_scale, const Context& context);

}  // namespace modelflow::passes
