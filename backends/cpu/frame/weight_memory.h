// Memory that lasts for packed weights, many in one huge page.
#pragma once

#include <cstddef>
#include <memory>

namespace modelflow::cpu {

/// 64-byte aligned memory, not zeroed, for weights that every run streams. Weights lie side by side in huge pages (2
/// MiB) where the system has them, which saves TLB misses; a page goes back to the system with the last that lies in
/// it. Throws Error(limit) where there is no memory.
std::shared_ptr<std::byte> weight_memory(std::size_t bytes);

}  // namespace modelflow::cpu
