#pragma once

#include <cstddef>
#include <cstdint>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

struct VectorCode;

/// How many products of bfloat16 numbers the target makes in the time of one in float32, by its instructions: AMX sums
/// over 32 numbers that lie side by side (`depth` of them do), vdpbf16ps over 2. One where it has neither.
double bf16_gain(const Target& target, double depth);

/// Numbers rounded to bfloat16 (or that are in it), as float32, on the threads of the call. Any CPU.
const float* rounded_to_bf16(const View& in, const Target& target, Invocation& call);
/// The same numbers as float32.
const float* widened(const VectorCode& code, const std::uint16_t* in, std::size_t count, Invocation& call);
/// Float32 numbers in bfloat16.
void round_to_bf16(const VectorCode& code, const float* in, std::size_t count, std::uint16_t* out, Invocation& call);

}  // namespace modelflow::cpu
