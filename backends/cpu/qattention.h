#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/attention.h"
#include "backends/cpu/carve.h"
#include "backends/cpu/gemm_vnni.h"

/// Where the operands of attention in 8 bits lie.
namespace modelflow::cpu {

/// Keys [depth, keys] and values [keys, width] of one head as pack_b_vnni packs them.
struct StepOperands {
  std::byte *keys, *values;
  float *key_units, *value_units;        ///< [keys], [width]: the size of their steps
  std::int8_t *key_steps, *value_steps;  ///< [keys, depth], [keys, width]: on the way to being packed
  std::size_t floats;                    ///< that all of it takes

  /// `depth_of`: the depth that B is padded to.
  StepOperands(const AttentionHead& h, std::size_t (*depth_of)(std::size_t), float* packed) {
    Carve memory(packed);
    keys = memory.take<std::byte>(packed_b_vnni_bytes(depth_of(h.depth), h.keys));
    values = memory.take<std::byte>(packed_b_vnni_bytes(depth_of(h.keys), h.width));
    key_units = memory.take<float>(h.keys);
    value_units = memory.take<float>(h.width);
    key_steps = memory.take<std::int8_t>(h.keys * h.depth);
    value_steps = memory.take<std::int8_t>(h.keys * h.width);
    floats = memory.floats();
  }
};

}  // namespace modelflow::cpu
