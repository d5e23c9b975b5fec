// Weights in 8 bits as kernels of a GPU want them: rows of bytes, and what zero points add to each of their products.
#pragma once

#include <span>

#include "backends/call_attrs.h"
#include "backends/cuda/launches/bytes.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// The attributes `of`_scale and `of`_zero_point (`of` empty: scale and zero_point), which the op has checked.
Steps steps_of(const CallAttrs& attrs, const std::string& of);

/// Rows of w ([rows, depth] of int8) with zeros behind them up to a multiple of 16.
Tensor padded(const Tensor& w);
/// [columns, rows] of a matrix of int8.
Tensor transposed(const Tensor& w);
/// bias (int32, null for none) less zero_point times the sum of each row of w: int32 by row.
Tensor shifts(const Tensor& w, const Tensor* bias, std::int32_t zero_point);
/// w_scale times `unit`, by row.
Tensor scaled(const Tensor& w_scale, float unit);
/// Numbers of rows of w that each have a scale, as floats.
Tensor dequantized(const Tensor& w, const Tensor& scale);

/// A no for rows of bytes and their scales (of bias, which may be null) that are not constant, do not fit each other,
/// or whose sums may leave 32 bits.
Verdict accepts_rows(const Operand& w, const Operand& scale, const Tensor* bias);

/// Seconds of a product of bytes on tensor cores.
double byte_product_seconds(const Call& call, const Target& target);

}  // namespace modelflow::cuda
