// Calls of QMatMul, QMatMul4 and MatMulBf16 in numbers: extents and operands, which calls the kernels take, and their
// work.
#pragma once

#include "backends/ops/matmul_bf16_attrs.h"
#include "backends/ops/qmatmul4_attrs.h"
#include "backends/ops/qmatmul_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// A QMatMul call in numbers: [m, k] by [k, n] (b before trans_b), all rows of a in one product.
struct QMatMulProblem {
  /// Checks types and shapes; throws Error(invalid_input).
  QMatMulProblem(const ops::QMatMulAttrs& attrs, const Invocation& call);

  Dims y;
  std::size_t m = 0, n = 0, k = 0;
  const float *a = nullptr, *b_scale = nullptr, *b_zero = nullptr, *bias = nullptr, *residual = nullptr;
  const std::int8_t* b = nullptr;
};

/// The same for QMatMul4, where b is [n, blocks, block / 2] bytes.
struct QMatMul4Problem {
  QMatMul4Problem(const ops::QMatMul4Attrs& attrs, const Invocation& call);

  Dims y;
  std::size_t m = 0, n = 0, k = 0, blocks = 0;
  const float *a = nullptr, *b_scale = nullptr, *b_zero = nullptr, *bias = nullptr, *residual = nullptr;
  const std::uint8_t* b = nullptr;
};

/// The same for MatMulBf16 and MatMulToBf16, where b is bfloat16 and a that or float32.
struct MatMulBf16Problem {
  MatMulBf16Problem(const ops::MatMulBf16Attrs& attrs, const Invocation& call);

  Dims y;
  std::size_t m = 0, n = 0, k = 0;
  View a;
  const float *bias = nullptr, *residual = nullptr;
  const std::uint16_t* b = nullptr;
};

/// Steps that all of a is quantized in.
struct TensorSteps {
  float scale;
  std::int32_t zero_point;
};
/// What numbers lie in, 0 among them; no number where one of them is none.
struct Range {
  float low = 0, high = 0;
  void add(float least, float most) {
    low = low <= least || low != low ? low : least;
    high = high >= most || high != high ? high : most;
  }
};
/// As DynamicQuantizeLinear chooses them: uint8, 0 is a step.
TensorSteps tensor_steps(const Range& range);

/// What every kernel of these ops can run at all.
Verdict accepts_qmatmul(const Call& call, const Target&);
Verdict accepts_qmatmul4(const Call& call, const Target&);
Verdict accepts_matmul_bf16(const Call& call, const Target&);

/// Below that, AVX-512 reads weights as fast as memory gives them, and the tiles of AMX stay mostly empty.
inline constexpr double kFewRows = 4;
/// Rows of a; `unknown` where its extents are.
double rows_of_product(const Call& call, double unknown);

/// What a product in low precision takes, unknown dims as 1.
struct ProductWork {
  double steps = 0;     ///< multiplications and additions of integers
  double epilogue = 0;  ///< floating point operations before and behind the product
  double bytes = 0;     ///< read and written
};
ProductWork qmatmul_work(const Call& call);
ProductWork qmatmul4_work(const Call& call);
ProductWork matmul_bf16_work(const Call& call);

/// Of the kernels of MatMulBf16 that multiply bfloat16: a rounded, enough rows of it, constant weights; and seconds by
/// the rate of the instructions, half of it kept.
Verdict accepts_rounded_product(const Call& call, const Target&);
double rounded_product_cost(const Call& call, const Target& target);
/// How many products of bfloat16 numbers the target makes in the time of one in float32, by its instructions: AMX sums
/// over 32 numbers that lie side by side (`depth` of them do), vdpbf16ps over 2. One where it has neither.
double bf16_gain(const Target& target, double depth);

}  // namespace modelflow::cpu
