// What host code of GPU kernels asks of operands: their type, and how they broadcast.
#pragma once

#include <optional>

#include "backends/broadcast.h"
#include "backends/cuda/launches.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// Nothing for a type that is no float of kernels.
std::optional<Number> number_of(DType dtype);
/// The same for kernels that take steps of 8 bits as well.
std::optional<Number> number_or_bytes_of(DType dtype);
std::size_t bytes_of(Number number);

/// The type of x, which all inputs must share; throws Error(invalid_input) naming the op.
Number shared_number(const char* op, const Invocation& call);
/// A no for operands that are not all float32, all float16 or all bfloat16.
Verdict accepts_numbers(const Call& call);
/// A no for operands that are of other types than their op declares, its floats all alike; of 16 bits, where it takes
/// any.
Verdict accepts_declared_types(const Call& call);
/// A no for an operand of more axes than places_of() takes for certain: it merges neighbours where it can.
Verdict accepts_axes(const Call& call);
/// A no for an activation that kernels do not know.
Verdict accepts_activation(const Call& call);
/// Bytes of one element of x.
double element_bytes(const Call& call);
/// Bytes of all operands and results, each counted once.
double operand_bytes(const Call& call);

/// Throws Error(unsupported) for more operands or axes than kernels take.
Places places_of(const char* op, const Broadcast& shape, std::size_t operands);

}  // namespace modelflow::cuda
