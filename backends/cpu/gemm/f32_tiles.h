// When and how products of float32 by packed weights run on AMX.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cpu/gemm/f32.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Whether tiles take less time than AVX-512 for a product of [rows, depth] by [depth, columns].
bool tiles_pay(std::size_t rows, std::size_t columns, std::size_t depth);

/// Whether they do for the rows of this operand and weights, not empty, of so many columns.
Verdict accepts_tiles(const Operand& rows, const Tensor& weights, std::size_t columns);
/// Seconds of a product with so many operations that moves so many bytes.
double tiles_cost(double flops, double bytes, const Target& target);

bool all_finite(std::span<const float> numbers);
/// C as `gemm` says, on the threads of the call; B as f32_avx512.pack_b left it, all of it finite, A and C dense.
/// False, and C is void, where a number of A is infinite or NaN: AVX-512 has to do it. Only where
/// host_isas().has(Isa::amx).
bool multiply_on_tiles(const Gemm& gemm, Invocation& call);

}  // namespace modelflow::cpu
