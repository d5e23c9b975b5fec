// The attributes of MatMul, and ONNX text of what follows a product.
#pragma once

#include <string>

#include "backends/call_attrs.h"
#include "backends/ops/residual.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp matmul_op;

/// The attributes of modelflow.MatMul, read once and checked. Throws Error(invalid_input).
struct MatMulAttrs {
  explicit MatMulAttrs(const CallAttrs& attrs);

  bool trans_a = false, trans_b = false, has_bias = false;
  /// There is a bias and it is [m, 1], a number for each row, not [n]. The attribute says, with and without one, that
  /// the weights stand on the left: the body has them for each matrix of b.
  bool row_bias = false;
  float scale = 1;
  Residual residual = Residual::none;

  std::size_t inputs() const { return 2u + has_bias + (residual != Residual::none); }
  std::size_t bias_index() const { return 2u; }
  std::size_t residual_index() const { return 2u + has_bias; }
};

/// ONNX text of what follows a product named `at`: bias, residual sum and activation as the attributes say. The last
/// result is y; without any of them the text is empty and the product has to be y itself.
std::string epilogue_body(const CallAttrs& attrs, int opset, std::string at);
bool has_epilogue(const CallAttrs& attrs);

/// Samples of MatMul: weights are constant in most of them.
std::vector<Call> matmul_samples();

}  // namespace modelflow::ops
