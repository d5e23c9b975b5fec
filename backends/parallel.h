// Marks threads that work in a parallel loop of a runtime.
#pragma once

#include "backends/vector_registers.h"

namespace modelflow {

/// Marks the calling thread as a worker of Invocation::parallel while it lives. Runtimes do not nest parallel loops,
/// and oneDNN asks whether it is inside one.
class ParallelRegion {
 public:
  ParallelRegion() : outer_(flag()) { flag() = true; }
  ~ParallelRegion() { flag() = outer_; }
  ParallelRegion(const ParallelRegion&) = delete;
  ParallelRegion& operator=(const ParallelRegion&) = delete;
  static bool active() { return flag(); }

 private:
  static bool& flag() {
    static thread_local bool inside = false;
    return inside;
  }
  bool outer_;
  VectorRegisters registers_;
};

}  // namespace modelflow
