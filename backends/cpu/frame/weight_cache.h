// The cache of packed weights, which all sessions of a process share.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "modelflow/error.h"
#include "modelflow/tensor.h"

namespace modelflow::cpu {

/// Packed weights, shared by every kernel of the process that packs the same tensor in the same way: several sessions
/// over one model hold one copy. `layout` says everything that the bytes depend on besides the tensor ("gemm_avx512
/// n32"). Freed with the last holder. The memory is 64-byte aligned.
std::shared_ptr<const std::byte> packed_weights(const Tensor& weights, const std::string& layout, std::size_t bytes,
                                                const std::function<void(std::byte*)>& pack);

/// 128 bits of what it holds, hashed (XXH3) with a seed of this process, so that nobody can prepare weights that are
/// taken for those of another model.
std::string fingerprint(const Tensor& tensor);

}  // namespace modelflow::cpu
