// What an extent counts as in costs where neither data nor the user nor the model says it.
#pragma once

#include <cstdint>

namespace modelflow::typical {

inline constexpr std::int64_t kBatch = 1;
inline constexpr std::int64_t kImage = 224;  ///< a side of an image
inline constexpr std::int64_t kMap = 56;     ///< the same in the middle of a network, behind two poolings
inline constexpr std::int64_t kRows = 128;   ///< tokens, frames and the like

}  // namespace modelflow::typical
