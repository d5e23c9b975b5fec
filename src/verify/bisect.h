// The first wrong one of many steps.
#pragma once

#include <cstddef>
#include <functional>

namespace modelflow {

/// Which of `count` steps, applied in order, first breaks the result: fails(k) says whether the first k steps together
/// do. fails(0) is taken to be false and fails(count) true. Gives the index of the step; asks log2(count) times.
std::size_t first_culprit(std::size_t count, const std::function<bool(std::size_t)>& fails);

}  // namespace modelflow
