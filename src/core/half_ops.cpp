// The standard ops of which ONNX Runtime's CUDA provider has kernels for float16 and bfloat16, and since which opset:
// its docs/OperatorKernels.md as a table, less what ONNX does not allow (kernels are registered for more types than
// operators have). Not in it: what it runs on the CPU alone (NonMaxSuppression, Celu, ...), what has float32 alone
// (Range, RoiAlign, GridSample), and sums of magnitudes without bound, whose results leave the range of float16 early.
#include "src/core/half_ops.h"

#include <algorithm>
#include <array>
#include <string>

namespace modelflow {
namespace {

constexpr std::array kHalfOps = {
    HalfOp{.op = "Abs", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Add", .f16 = 7, .bf16 = 13},
    HalfOp{.op = "ArgMax", .f16 = 1},
    HalfOp{.op = "ArgMin", .f16 = 1},
    HalfOp{.op = "AveragePool", .f16 = 7, .bf16 = 22},
    HalfOp{.op = "BatchNormalization", .f16 = 7},
    HalfOp{.op = "Ceil", .f16 = 6},
    HalfOp{.op = "Clip", .f16 = 12},
    HalfOp{.op = "Compress", .f16 = 9},
    HalfOp{.op = "Concat", .f16 = 4, .bf16 = 13},
    HalfOp{.op = "ConstantOfShape", .f16 = 9, .bf16 = 20},
    HalfOp{.op = "Conv", .f16 = 1, .bf16 = 22},
    HalfOp{.op = "ConvTranspose", .f16 = 1},
    HalfOp{.op = "Cos", .f16 = 7},
    HalfOp{.op = "DepthToSpace", .f16 = 1},
    HalfOp{.op = "Div", .f16 = 7, .bf16 = 13},
    HalfOp{.op = "Einsum", .f16 = 12},
    HalfOp{.op = "Elu", .f16 = 6},
    HalfOp{.op = "Equal", .f16 = 11},
    HalfOp{.op = "Erf", .f16 = 9, .bf16 = 13},
    HalfOp{.op = "Exp", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "Expand", .f16 = 8, .bf16 = 13},
    HalfOp{.op = "Flatten", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Floor", .f16 = 6},
    HalfOp{.op = "GRU", .f16 = 7},
    HalfOp{.op = "Gather", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "GatherElements", .f16 = 11, .bf16 = 13},
    HalfOp{.op = "GatherND", .f16 = 11, .bf16 = 13},
    HalfOp{.op = "Gelu", .f16 = 20, .bf16 = 20},
    HalfOp{.op = "Gemm", .f16 = 7, .bf16 = 13},
    HalfOp{.op = "GlobalAveragePool", .f16 = 1},
    HalfOp{.op = "GlobalMaxPool", .f16 = 1},
    HalfOp{.op = "Greater", .f16 = 7},
    HalfOp{.op = "GreaterOrEqual", .f16 = 12},
    HalfOp{.op = "GroupNormalization", .f16 = 18},  // a function of such ops, as Mish is
    HalfOp{.op = "HardSigmoid", .f16 = 6, .bf16 = 22},
    HalfOp{.op = "HardSwish", .f16 = 14, .bf16 = 22},
    HalfOp{.op = "Identity", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "InstanceNormalization", .f16 = 6},
    HalfOp{.op = "IsNaN", .f16 = 9, .bf16 = 13},
    HalfOp{.op = "LRN", .f16 = 1},
    HalfOp{.op = "LSTM", .f16 = 7},
    HalfOp{.op = "LayerNormalization", .f16 = 17, .bf16 = 17},
    HalfOp{.op = "LeakyRelu", .f16 = 6},
    HalfOp{.op = "Less", .f16 = 7},
    HalfOp{.op = "LessOrEqual", .f16 = 12},
    HalfOp{.op = "Log", .f16 = 6},
    HalfOp{.op = "LogSoftmax", .f16 = 1},
    HalfOp{.op = "MatMul", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Max", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "MaxPool", .f16 = 1},
    HalfOp{.op = "Min", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "Mish", .f16 = 18},
    HalfOp{.op = "Mul", .f16 = 7, .bf16 = 13},
    HalfOp{.op = "Neg", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "NonZero", .f16 = 9},
    HalfOp{.op = "OneHot", .f16 = 11, .single = 1},
    HalfOp{.op = "PRelu", .f16 = 7},
    HalfOp{.op = "Pad", .f16 = 2},
    HalfOp{.op = "Pow", .f16 = 7, .bf16 = 15},
    HalfOp{.op = "RMSNormalization", .f16 = 23, .bf16 = 23},
    HalfOp{.op = "RNN", .f16 = 7},
    HalfOp{.op = "Reciprocal", .f16 = 6},
    HalfOp{.op = "ReduceMax", .f16 = 1},
    HalfOp{.op = "ReduceMean", .f16 = 1},  // in float32 inside
    HalfOp{.op = "ReduceMin", .f16 = 1},
    HalfOp{.op = "Relu", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "Reshape", .f16 = 5, .bf16 = 13},
    HalfOp{.op = "Resize", .f16 = 11, .single = 2},
    HalfOp{.op = "ReverseSequence", .f16 = 10},
    HalfOp{.op = "Round", .f16 = 11},
    HalfOp{.op = "ScatterElements", .f16 = 11, .bf16 = 13},
    HalfOp{.op = "ScatterND", .f16 = 11, .bf16 = 13},
    HalfOp{.op = "Selu", .f16 = 6},
    HalfOp{.op = "Shrink", .f16 = 9},
    HalfOp{.op = "Sigmoid", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "Sign", .f16 = 9, .bf16 = 13},
    HalfOp{.op = "Sin", .f16 = 7},
    HalfOp{.op = "Slice", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Softmax", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Softplus", .f16 = 1},
    HalfOp{.op = "Softsign", .f16 = 1},
    HalfOp{.op = "SpaceToDepth", .f16 = 1},
    HalfOp{.op = "Split", .f16 = 2, .bf16 = 13},
    HalfOp{.op = "Sqrt", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "Squeeze", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Sub", .f16 = 7, .bf16 = 13},
    HalfOp{.op = "Sum", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "Tanh", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "ThresholdedRelu", .f16 = 10},
    HalfOp{.op = "Tile", .f16 = 6, .bf16 = 13},
    HalfOp{.op = "TopK", .f16 = 1},
    HalfOp{.op = "Transpose", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Trilu", .f16 = 14, .bf16 = 14},
    HalfOp{.op = "Unsqueeze", .f16 = 1, .bf16 = 13},
    HalfOp{.op = "Where", .f16 = 9},
};

}  // namespace

const HalfOp* half_op(std::string_view op, DType half, std::int64_t opset, std::string& why_not) {
  const auto row = std::ranges::find(kHalfOps, op, &HalfOp::op);
  const int since = row == kHalfOps.end() ? 0 : half == DType::f16 ? row->f16 : row->bf16;
  if (since != 0 && opset >= since) return &*row;
  why_not = "ONNX Runtime's CUDA provider has no kernel for it in " + std::string(name(half));
  if (row != kHalfOps.end()) why_not += " at opset " + std::to_string(opset);
  return nullptr;
}

std::span<const HalfOp> half_ops() { return kHalfOps; }

}  // namespace modelflow
