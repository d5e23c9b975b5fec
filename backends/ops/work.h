// Multiplications and additions of fused ops, and the bytes that plain ops move in their place; unknown dims count
// as 1.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// Weights [M, C/group, window...] as input 1.
double conv_flops(const Call& call);
/// Weights [C, M, window...] as input 1, one group.
double conv_transpose_flops(const Call& call);
/// The depth is the last axis of input 0, the one in front of it where trans_a (transA of Gemm) says so.
double product_flops(const Call& call);
/// x [..., input], weights W and R as inputs 1 and 2.
double recurrent_flops(const Call& call);
/// Rates [channels, states] as input 2; an exponential is some ten operations beside the six of a state.
double selective_scan_flops(const Call& call);
/// The first extent, 1 of a scalar.
double first_extent(const Shape& shape);
/// Both products.
double attention_flops(const Call& call);
/// Passes over scores and operands that plain ops make besides the two products.
double attention_bytes(const Call& call);

}  // namespace modelflow::ops
