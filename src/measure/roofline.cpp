// The operations of fused and standard nodes, from the extents in a profile.
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
  Factors factors = Factors::float32;
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
    StockOp{.name = "QLinearConv", .kind = "Conv", .weights = 3, .factors = Factors::int8},
    StockOp{.name = "QLinearMatMul", .kind = "MatMul", .weights = 3, .factors = Factors::int8},
    StockOp{.name = "MatMulInteger", .kind = "MatMul", .factors = Factors::int8},
    StockOp{.name = "MatMulIntegerToFloat", .kind = "MatMul", .factors = Factors::int8},
    StockOp{.name = "DynamicQuantizeMatMul", .kind = "MatMul", .factors = Factors::int8},
};

Factors factors_of(std::string_view kind, const Attrs& attrs) {
  const FusedOp* op = find_fused_op(kind);
  const auto reads = [&](DType type) {
    return op && std::ranges::find(op->input_types, type) != op->input_types.end();
  };
  if (reads(DType::i8) || reads(DType::u8)) return Factors::int8;
  return reads(DType::bf16) && attrs.integer("round_a", 1) ? Factors::bf16 : Factors::float32;
}

}  // namespace

Work work_of(const NodeTime& time, const Node* node) {
  if (time.outputs.empty()) return {};
  Call call;
  std::size_t weights = 1;
  Work work;
  if (node) call.attrs = node->attrs;
  if (const std::string_view kind = node ? kind_of(time.op, node->attrs) : "";
      !kind.empty() && node->domain() == kDomain) {
    call.op = kind;
    work.factors = factors_of(kind, node->attrs);
  } else {
    const auto stock = std::ranges::find(kStockOps, time.op, &StockOp::name);
    if (stock == kStockOps.end()) return {};
    call.op = stock->kind;
    weights = stock->weights;
    work.factors = stock->factors;
  }
  for (std::size_t i = 0; i < time.inputs.size(); ++i)
    if (i == 0 || i >= weights) call.inputs.push_back({"", DType::undefined, Shape::of(time.inputs[i])});
  call.outputs.push_back({"", DType::undefined, Shape::of(time.outputs[0])});
  const bool packed = call.attrs.integer("packed") != 0;  // queries, keys and values are one input
  work.operations = call.inputs.size() > 1 || packed ? flops(call) : 0;
  return work;
}

}  // namespace modelflow
