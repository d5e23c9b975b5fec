#include "modelflow/roofline.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "modelflow/pass.h"
#include "src/measure/select.h"

namespace modelflow {
namespace {

/// What ONNX Runtime calls the products and convolutions that it runs, and where it has the second factor.
struct StockOp {
  std::string_view name, kind;
  std::size_t weights = 1;
  bool int8 = false;
};

constexpr std::array kStockOps = {
    StockOp{.name = "Conv", .kind = "Conv"},
    StockOp{.name = "FusedConv", .kind = "Conv"},
    StockOp{.name = "NhwcFusedConv", .kind = "Conv"},
    StockOp{.name = "ConvTranspose", .kind = "ConvTranspose"},
    StockOp{.name = "MatMul", .kind = "MatMul"},
    StockOp{.name = "FusedMatMul", .kind = "MatMul"},
    StockOp{.name = "Gemm", .kind = "Gemm"},
    StockOp{.name = "FusedGemm", .kind = "Gemm"},
    StockOp{.name = "QLinearConv", .kind = "Conv", .weights = 3, .int8 = true},
    StockOp{.name = "QLinearMatMul", .kind = "MatMul", .weights = 3, .int8 = true},
    StockOp{.name = "MatMulInteger", .kind = "MatMul", .int8 = true},
    StockOp{.name = "MatMulIntegerToFloat", .kind = "MatMul", .int8 = true},
    StockOp{.name = "DynamicQuantizeMatMul", .kind = "MatMul", .int8 = true},
};

bool reads_bytes(std::string_view kind) {
  const FusedOp* op = find_fused_op(kind);
  return op && std::ranges::any_of(op->input_types, [](DType t) { return t == DType::i8 || t == DType::u8; });
}

}  // namespace

Work work_of(const NodeTime& time, const Node* node) {
  if (time.outputs.empty()) return {};
  Call call;
  std::size_t weights = 1;
  Work work;
  if (node) call.attrs = node->attrs;
  if (const std::string_view kind = kind_of(time.op); node && node->domain() == kDomain && !kind.empty()) {
    call.op = kind;
    work.int8 = reads_bytes(kind);
  } else {
    const auto stock = std::ranges::find(kStockOps, time.op, &StockOp::name);
    if (stock == kStockOps.end()) return {};
    call.op = stock->kind;
    weights = stock->weights;
    work.int8 = stock->int8;
  }
  for (std::size_t i = 0; i < time.inputs.size(); ++i)
    if (i == 0 || i >= weights) call.inputs.push_back({"", DType::undefined, Shape::of(time.inputs[i])});
  call.outputs.push_back({"", DType::undefined, Shape::of(time.outputs[0])});
  work.operations = call.inputs.size() > 1 || call.op == "Attention" ? flops(call) : 0;
  return work;
}

}  // namespace modelflow
