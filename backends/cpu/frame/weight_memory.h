// Memory that lasts for packed weights, many in one huge page.
#pragma once

#include <cstddef>
#include <memory>

namespace modelflow::cpu {

/// With AddressSanitizer weights lie alone, so that it sees reads beyond them.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MODELFLOW_WEIGHTS_LIE_ALONE true
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MODELFLOW_WEIGHTS_LIE_ALONE true
#endif
#if defined(MODELFLOW_WEIGHTS_LIE_ALONE)
constexpr bool kWeightsLieAlone = true;
#else
constexpr bool kWeightsLieAlone = false;
#endif

/// 64-byte aligned memory, not zeroed, for weights that every run streams. Weights lie side by side in huge pages (2
/// MiB) where the system has them, which saves TLB misses. A page goes back to the system with the last that lies in
/// it, but for the one that is being filled; its address is not used again before all weights of the same 64 MiB are
/// gone. Throws Error(limit) where there is no memory.
std::shared_ptr<std::byte> weight_memory(std::size_t bytes);

}  // namespace modelflow::cpu
