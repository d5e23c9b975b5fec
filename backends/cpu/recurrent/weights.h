// The weights of a recurrent layer, packed once.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/recurrent/code.h"
#include "backends/ops/recurrent_attrs.h"

namespace modelflow::cpu {

/// Weights of one product, packed for all directions.
struct RecurrentProduct {
  RecurrentMatrix matrix;
  std::shared_ptr<const std::byte> packed;
  std::size_t packed_bytes = 0;  ///< of one direction
  std::vector<float> scale;      ///< int8 weights: [dirs, blocks, gates, kUnits]
  std::vector<float> bias;       ///< [dirs, bias_floats]: of all gates, or of the candidate alone; may be empty
  std::size_t bias_floats = 0;

  /// What of a part depends on the weights alone.
  RecurrentPart part(std::size_t dir) const;
};

/// Everything constant about one node.
struct RecurrentWeights {
  RecurrentWeights(const Call& call, const RecurrentCode& code);

  RecurrentProduct project;    ///< x W and the bias, all gates
  RecurrentProduct step;       ///< h R: all gates, or z and r where the reset comes before the product
  RecurrentProduct candidate;  ///< (r * h) R of the gate h; only then
};

}  // namespace modelflow::cpu
