// The operations of fused and standard nodes, from the extents in a profile.
#include "src/measure/roofline.h"

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
    StockOp{.name = "Gemm", .kind = "MatMul"},
    StockOp{.name = "FusedGemm", .kind = "MatMul"},
    StockOp{.name = "QLinearConv", .kind = "Conv", .weights = 3, .factors = Factors::int8},
    StockOp{.name = "QLinearMatMul", .kind = "MatMul", .weights = 3, .factors = Factors::int8},
    StockOp{.name = "MatMulInteger", .kind = "MatMul", .factors = Factors::int8},
    StockOp{.name = "MatMulIntegerToFloat", .kind = "MatMul", .factors = Factors::int8},
    StockOp{.name = "DynamicQuantizeMatMul", .kind = "MatMul", .factors = Factors::int8},
    StockOp{.name = "ConvInteger", .kind = "Conv", .factors = Factors::int8},
    StockOp{.name = "LSTM", .kind = "LSTM"},
    StockOp{.name = "GRU", .kind = "GRU"},
    StockOp{.name = "RNN", .kind = "GRU"},
};

Factors factors_of(std::string_view kind, const Attrs& attrs) {
  const FusedOp* op = find_fused_op(kind);
  const auto reads = [&](DType type) {
    return op && std::ranges::find(op->input_types, type) != op->input_types.end();
  };
  if (reads(DType::i8) || reads(DType::u8)) return Factors::int8;
  return reads(DType::bf16) && attrs.integer("round_a", 1) ? Factors::bf16 : Factors::float32;
}

/// A node as the call whose work it is, without operands; `op` is empty where none counts.
struct Product {
  Call call;
  std::size_t weights = 1;
  Factors factors = Factors::float32;
};

Product product_of(std::string_view op, const Node* node) {
  Product product;
  if (const std::string_view kind = node && node->domain() == kDomain ? kind_of(op, node->attrs) : ""; !kind.empty()) {
    const FusedOp* fused = find_fused_op(kind);
    if (fused && fused->flops) product.call.op = kind;
    product.call.attrs = node->attrs;
    product.factors = factors_of(kind, node->attrs);
  } else if (const auto stock = std::ranges::find(kStockOps, op, &StockOp::name); stock != kStockOps.end()) {
    product.call.op = stock->kind;
    if (node && node->attrs.integer("transA")) product.call.attrs.set("trans_a", 1);
    product.weights = stock->weights;
    product.factors = stock->factors;
  }
  return product;
}

Work work_of(const Product& product) {
  const bool packed = product.call.attrs.integer("packed") != 0;  // queries, keys and values are one input
  const bool counts = product.call.inputs.size() > 1 || packed;
  return {.operations = counts ? flops(product.call) : 0, .factors = product.factors};
}

}  // namespace

Work work_of(const NodeTime& time, const Node* node) {
  Product product = product_of(time.op, node);
  if (time.outputs.empty() || product.call.op.empty()) return {};
  const auto add = [&](const Shape& shape) { product.call.inputs.push_back({"", DType::undefined, shape}); };
  // Weights that a kernel has packed are no inputs any more: a bias may stand in their place.
  const std::size_t at = product.weights, count = time.inputs.size();
  const Value* weights = node ? node->input(at) : nullptr;
  const bool packed =
      weights && weights->constant() && (count <= at || time.inputs[at].size() != weights->constant()->rank());
  for (std::size_t i = 0; i < count; ++i) {
    if (i == at && packed) add(weights->shape());
    if (i == 0 || i >= at) add(Shape::of(time.inputs[i]));
  }
  if (packed && count <= at) add(weights->shape());
  product.call.outputs.push_back({"", DType::undefined, Shape::of(time.outputs[0])});
  return work_of(product);
}

Work work_of(const Call& call) {
  const FusedOp* op = find_fused_op(call.op);
  return op && op->flops ? work_of(Product{.call = call, .factors = factors_of(call.op, call.attrs)}) : Work();
}

Work work_of(const Node& node) {
  Product product = product_of(node.op(), &node);
  if (product.call.op.empty() || !node.output()) return {};
  const auto operand = [](const Value* value) {
    return Operand{"", DType::undefined, value ? value->shape() : Shape()};
  };
  for (std::size_t i = 0; i < node.inputs().size(); ++i)
    if (i == 0 || i >= product.weights) product.call.inputs.push_back(operand(node.input(i)));
  product.call.outputs.push_back(operand(node.output()));
  return work_of(product);
}

bool has_products(const Node& node) { return !product_of(node.op(), &node).call.op.empty(); }

}  // namespace modelflow
