// Weights in 8 bits as kernels of a GPU want them: rows of bytes, and what zero points add to each of their products.
#pragma once

#include <span>

#include "backends/call_attrs.h"
#include "backends/cuda/launches/bytes.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// The attributes `of`_scale and `of`_zero_point (`of` empty: scale and zero_point), which the op has checked.
Steps steps_of(const CallAttrs& attrs, const std::string& of);

/// Bytes of a row of so many numbers as kernels read them: 16 at a time.
inline std::int64_t row_bytes(std::int64_t depth) { return (depth + 15) / 16 * 16; }

/// Rows of w ([rows, depth] of int8) with zeros behind them up to a multiple of 16.
Tensor padded(const Tensor& w);
/// bias (int32, null for none) less zero_point times the sum of each row of w: int32 by row.
Tensor shifts(const Tensor& w, const Tensor* bias, std::int32_t zero_point);
/// w_scale times `unit`, by row.
Tensor scaled(const Tensor& w_scale, float unit);
/// Numbers of rows of w that each have a scale, as floats.
Tensor dequantized(const Tensor& w, const Tensor& scale);

/// A no for bytes with a scale for each place along `axis` that are not constant, do not fit each other, or whose sums
/// over all other axes, bias (may be null) added, may leave 32 bits.
Verdict accepts_rows(const Operand& w, std::size_t axis, const Operand& scale, const Tensor* bias);

}  // namespace modelflow::cuda
