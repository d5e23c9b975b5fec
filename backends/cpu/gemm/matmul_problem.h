// A call of MatMul in numbers: extents and operands, which calls the kernels take, and its work.
#pragma once

#include <utility>
#include <vector>

#include "backends/cpu/gemm/f32.h"
#include "backends/ops/matmul_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// A MatMul call in numbers: `batch` products of [m, k] by [k, n] (before trans_*). When b is one matrix, a is not
/// transposed and no bias tells rows apart, all rows of a are one product.
struct MatMulProblem {
  /// Checks types and shapes; throws Error(invalid_input).
  MatMulProblem(const ops::MatMulAttrs& attrs, const Invocation& call);

  Dims y;
  std::size_t batch = 1, m = 0, n = 0, k = 0;
  /// Where the matrices of product i begin, in floats from the start of a and b.
  std::vector<std::pair<std::size_t, std::size_t>> offsets;
  const float *a = nullptr, *b = nullptr, *bias = nullptr, *row_bias = nullptr, *residual = nullptr;
};

/// The one matrix of constant b as this code reads it; null where b is not constant, empty or more than one matrix.
std::shared_ptr<const std::byte> packed_matrix(const Call& call, bool trans_b, const F32Code& code);

/// What the kernels of MatMul can run at all.
Verdict accepts_matmul(const Call& call, const Target&);
/// Floating point operations, those of the activation included, and bytes moved, unknown dims as 1.
double matmul_flops(const Call& call);
double matmul_bytes(const Call& call);

}  // namespace modelflow::cpu
