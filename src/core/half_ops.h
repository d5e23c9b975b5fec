// What ONNX Runtime's CUDA provider computes in floats of 16 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "modelflow/tensor.h"

namespace modelflow {

/// The opset since which Casts make bfloat16.
constexpr int kFirstWithBf16 = 13;

/// A standard op that can, and how.
struct HalfOp {
  std::string_view op;
  int f16 = 1, bf16 = 0;                   ///< the first opset with a kernel; 0: none has
  std::optional<std::size_t> single = {};  ///< the input that is float32 all the same
};

/// Whether a standard op has a kernel for `half`: the row of the table, or null with the reason.
const HalfOp* half_op(std::string_view op, DType half, std::int64_t opset, std::string& why_not);
/// The table.
std::span<const HalfOp> half_ops();

}  // namespace modelflow
