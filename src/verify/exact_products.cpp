// Signed operands of products of 8-bit numbers shifted to unsigned ones.
#include "src/verify/exact_products.h"

#include <algorithm>
#include <vector>

#include "modelflow/modelflow.h"
#include "src/verify/shifted.h"

namespace modelflow {
namespace {

struct Operands {
  std::size_t value, zero;  ///< places among the inputs
};

struct Product {
  const char* op;
  Operands a, b;
  std::size_t zero_of_result;  ///< its place; 0: the result is of 32 bits
};

constexpr Product kProducts[] = {
    {.op = "MatMulInteger", .a = {0, 2}, .b = {1, 3}, .zero_of_result = 0},
    {.op = "ConvInteger", .a = {0, 2}, .b = {1, 3}, .zero_of_result = 0},
    {.op = "QLinearMatMul", .a = {0, 2}, .b = {3, 5}, .zero_of_result = 7},
    {.op = "QLinearConv", .a = {0, 2}, .b = {3, 5}, .zero_of_result = 7},
};

const Product* product_of(const Node& node) {
  const auto* found = std::ranges::find_if(kProducts, [&](const Product& p) { return node.is(p.op); });
  return found == std::end(kProducts) ? nullptr : found;
}

bool has_products(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) {
    return product_of(*node) || std::ranges::any_of(node->subgraphs(), [](const Graph* g) { return has_products(*g); });
  });
}

bool is_signed(const Value* value) { return value && value->dtype() == DType::i8; }

/// What a contrib op gives (QLinearAdd) has no type here: its zero point has the same.
bool is_signed(const Operands& operand, const std::vector<Value*>& inputs) {
  const bool known = inputs[operand.value]->dtype() != DType::undefined || inputs.size() <= operand.zero;
  return is_signed(inputs[known ? operand.value : operand.zero]);
}

void make_unsigned(Node& node, const Operands& operand, std::vector<Value*>& inputs) {
  if (!is_signed(operand, inputs)) return;
  Graph& graph = node.graph();
  if (inputs.size() <= operand.zero) inputs.resize(operand.zero + 1);
  inputs[operand.value] = &shifted(graph, *inputs[operand.value], kToUnsigned, DType::u8, &node);
  Value*& zero = inputs[operand.zero];
  zero = zero ? &shifted(graph, *zero, kToUnsigned, DType::u8, &node)
              : &graph.add_constant(Tensor::of<std::uint8_t>({}, {std::uint8_t{kToUnsigned}}));
}

void make_exact(Node& node, const Product& product) {
  Graph& graph = node.graph();
  std::vector<Value*> inputs = node.inputs();
  if (inputs.size() <= std::max(product.a.value, product.b.value)) return;
  make_unsigned(node, product.a, inputs);
  make_unsigned(node, product.b, inputs);
  if (inputs == node.inputs()) return;
  const std::size_t zero = product.zero_of_result;
  const bool signed_result = zero && zero < inputs.size() && is_signed(inputs[zero]);
  if (signed_result) inputs[zero] = &shifted(graph, *inputs[zero], kToUnsigned, DType::u8, &node);
  Node& exact = graph.add(node.op(), inputs, {.before = &node, .attrs = node.attrs});
  Value* result = exact.output();
  if (signed_result) result = &shifted(graph, *result, -kToUnsigned, DType::i8, &node);
  graph.replace(*node.output(), *result);
  graph.erase(node);
}

void make_exact(Graph& graph) {
  std::vector<Node*> found;
  for (const auto& node : graph.nodes()) {
    if (product_of(*node) && node->output()) found.push_back(node.get());
    for (Graph* inner : node->subgraphs()) make_exact(*inner);
  }
  for (Node* node : found) make_exact(*node, *product_of(*node));
}

}  // namespace

bool multiplies_bytes_exactly() { return host_isas().has(Isa::avx_vnni) || host_isas().has(Isa::avx512_vnni); }

std::optional<Model> with_exact_products(const Model& model, bool bodies_run) {
  if (multiplies_bytes_exactly()) return {};
  const bool in_bodies =
      bodies_run && std::ranges::any_of(model.functions, [](const Function& f) { return has_products(*f.body); });
  if (!in_bodies && !has_products(model.graph())) return {};
  Model exact = in_bodies ? inline_functions(model) : model;
  infer_types(exact);  // signed or not
  make_exact(exact.graph());
  return exact;
}

}  // namespace modelflow
