// Memory of a mapped file given back to the system when its weights have been packed.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

/// Gives the pages of memory that is mapped from a file back to the system; a later read brings them again from the
/// file. Leaves every other memory alone, pages of a private mapping that were written (weights changed in memory and
/// given to the session) among it. For plain weights that have been packed: ONNX Runtime maps external data,
/// keeps the mapping as long as the session, and nobody reads it again.
void release_mapped(const void* data, std::size_t bytes);

}  // namespace modelflow::cpu
