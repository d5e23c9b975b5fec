// Weights of models that arrive quantized.
#pragma once

#include <optional>
#include <vector>

#include "modelflow/pass.h"

/// Models that arrive quantized: their weights as the passes see them, float32, with a note of what they came from.
namespace modelflow::passes {

/// Weights in [-127, 127] with one scale per index of the axis.
struct QuantizedWeights {
  Tensor values;                           ///< i8, dims of the weights
  Tensor scales;                           ///< f32, [extent of the axis]
  std::optional<Tensor> zero_points = {};  ///< as scales, whole numbers; none: 0
};

/// The 8-bit weights behind a float32 constant that import_quantized() made; nothing for other constants, also not when
/// something was folded into them or their scales lie along another axis. One scale for all becomes one per index.
std::optional<QuantizedWeights> imported_weights(const Value& weights, std::size_t axis);
/// Keeps 8-bit weights in the graph, unread, for imported_weights(): their scales lie along the axis.
/// `zeros`: f32, one or one per channel; null: 0.
void keep_weights(Graph& graph, Value& dense, std::size_t axis, const Value& values, const Value& scales,
                  const Value* zeros = nullptr);
/// The float32 constants of this graph that keep_weights() has a note of.
std::vector<Value*> imported(const Graph& graph);
/// Removes the 8-bit weights that no pass has used.
void forget_weights(Graph& graph);

}  // namespace modelflow::passes
