// How much memory the threads of a block may share: what hosts plan with and launches ask for.
#pragma once

#include <cstdint>

namespace modelflow::cuda {

/// Granted to a block by every device unasked.
inline constexpr std::int64_t kGrantedShared = 48 << 10;
/// The most that a kernel declares for itself, beside the dynamic memory that its launch names; limits are on the sum.
inline constexpr std::int64_t kStaticShared = 1 << 10;

/// Whether so many dynamic bytes have to be asked for.
inline constexpr bool has_to_ask(std::int64_t dynamic) { return dynamic + kStaticShared > kGrantedShared; }
/// Whether a device that has so much for a block grants so many dynamic bytes.
inline constexpr bool fits_shared(std::int64_t dynamic, std::int64_t device) {
  return dynamic + kStaticShared <= device;
}

}  // namespace modelflow::cuda
