// A parallel loop whose tasks have scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Runs body(task, scratch) for tasks 0 .. tasks - 1 on the threads of the call; one alone runs at once. `scratch` is
/// `bytes` of memory, 64-byte aligned, that no other task has meanwhile: the same for one task after the other, which
/// is warm in its core's cache more often than memory per task would be.
void run_with_scratch(Invocation& call, std::int64_t tasks, std::size_t bytes,
                      const std::function<void(std::int64_t, std::byte*)>& body);

}  // namespace modelflow::cpu
