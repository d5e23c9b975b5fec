// Rounding of float32 to bfloat16 and back, on all threads of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

struct VectorCode;

/// Numbers rounded to bfloat16 (or that are in it), as float32, on the threads of the call.
const float* rounded_to_bf16(const VectorCode& code, const View& in, Invocation& call);
/// The same numbers as float32.
const float* widened(const VectorCode& code, const std::uint16_t* in, std::size_t count, Invocation& call);
/// Float32 numbers in bfloat16.
void round_to_bf16(const VectorCode& code, const float* in, std::size_t count, std::uint16_t* out, Invocation& call);

}  // namespace modelflow::cpu
