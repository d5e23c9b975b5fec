#pragma once

// The code that is written once over vectors (vector.h) and compiled for each instruction set: loops that kernels run.

#include "backends/cpu/activation.h"
#include "backends/cpu/pointwise.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

struct VectorCode {
  PointwiseLoops pointwise;
};

/// Each only where the machine has the instructions.
extern const VectorCode vector_code_any, vector_code_avx2, vector_code_avx512;

const VectorCode& host_vector_code();

/// Kernel::create of an implementation that runs one of them.
template <class Made, const VectorCode& code>
std::unique_ptr<Implementation> with_code(const Call& call, const Target&) {
  return std::make_unique<Made>(call, code);
}

}  // namespace modelflow::cpu
