#pragma once

// All code over vectors, for the instruction set that the including file is compiled for.

#include "backends/cpu/pointwise_loops.h"
#include "backends/cpu/vector_code.h"

namespace modelflow::cpu {
namespace {

constexpr VectorCode kCode = {
    .pointwise = {activate, step, fill, join},
};

}  // namespace
}  // namespace modelflow::cpu
