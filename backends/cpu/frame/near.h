// How much of what a loop reads again may wait in the L2 cache of a target.
#pragma once

#include <cstddef>
#include <cstdint>

#include "modelflow/target.h"

namespace modelflow::cpu {

/// Of so many bytes, which were found best with 1 to 2 MiB of L2 per core, the share that smaller ones hold.
inline std::size_t near_bytes(const Target& target, std::size_t bytes) {
  constexpr std::int64_t kTuned = 1 << 20;
  return target.l2 >= kTuned ? bytes : bytes * static_cast<std::size_t>(target.l2 >> 10) / (kTuned >> 10);
}

}  // namespace modelflow::cpu
