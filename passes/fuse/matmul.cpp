// MatMul and Gemm -> modelflow.MatMul: transposes of the last two dims and scalar factors around the product become
// attributes, then bias, activation and residual sum follow.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"
#include "passes/graph/folded.h"
#include "passes/graph/imported_weights.h"
#include "passes/graph/transposed.h"

namespace modelflow::passes {
namespace {

/// What the product of one node looks like once everything in front of it is read through.
struct Product {
  Value* a;
  Value* b;
  bool trans_a = false, trans_b = false;
  bool left = false;  ///< a holds weights for all matrices of b
  float scale = 1;
  Value* bias = nullptr;
  int folded = 0;  ///< nodes read through

  /// Reads operand `value` through transposes and scalar factors.
  void look_through(Value*& value, bool& transposed) {
    while (Node* node = value->producer()) {
      if (&node->graph() != &value->graph()) return;
      Value* x = node->input(0);
      if (swaps_last_two(*node)) {
        transposed = !transposed;
      } else {
        const std::optional<float> factor = only_reader(*value) ? scaled(*node, x) : std::nullopt;
        const std::optional<float> product = factor ? folded_scale(scale, *factor) : std::nullopt;
        if (!product) return;
        scale = *product;
      }
      value = x;
      ++folded;
    }
  }
};

bool vector_of(const Value& value, const Dim& size) {
  const Tensor* constant = value.constant();
  if (!constant || constant->rank() == 0 || !size.known()) return false;
  return constant->dims().back() == size.value() && constant->elements() == size.value();
}

/// Whether what it adds is nothing, or a number for each of its columns.
bool adds_a_bias(const Node& gemm) {
  const Value* c = gemm.input(2);
  if (!c || gemm.attrs.number("beta", 1) == 0) return true;
  const Shape& w = gemm.input(1)->shape();
  return w.has_rank() && w.rank() == 2 && vector_of(*c, w[gemm.attrs.integer("transB") != 0 ? 0 : 1]);
}

/// alpha * op(A) * op(B) + beta * C, with C as a bias of [N]; nothing when C is anything else.
std::optional<Product> read_gemm(const Node& gemm) {
  Product product{gemm.input(0), gemm.input(1)};
  product.trans_a = gemm.attrs.integer("transA") != 0;
  product.trans_b = gemm.attrs.integer("transB") != 0;
  product.scale = gemm.attrs.number("alpha", 1);
  Value* c = gemm.input(2);
  const float beta = gemm.attrs.number("beta", 1);
  if (!adds_a_bias(gemm)) return {};
  if (!c || beta == 0) return product;
  const Tensor& values = *c->constant();
  if (beta == 1 && values.rank() == 1) {
    product.bias = c;
    return product;
  }
  if (values.dtype() != DType::f32) return product;  // refused for that soon
  std::vector<double> scaled = values.to_doubles();
  for (double& value : scaled) value *= beta;
  std::optional<Tensor> bias = from_doubles(values.dtype(), {values.elements()}, scaled);
  if (!bias) return {};
  product.bias = &gemm.graph().add_constant(*std::move(bias), c->name());
  return product;
}

/// Weights on the left that are there for each matrix of a product, as its body has them for an empty batch: once is
/// enough for the fused op. Null where it is anything else.
Value* repeated_weights(const Node& product, Extents& extents) {
  const Node* expand = product.is("MatMul") ? made_by(product.input(0), "Expand") : nullptr;
  if (!expand || !expand->input(0)->constant() || rank_of(expand->input(0)) != 2) return nullptr;
  const Shape a = extents.of(*product.input(0)), b = extents.of(*product.input(1)), &w = expand->input(0)->shape();
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank() || a.rank() < 3) return nullptr;
  for (std::size_t i = 0; i + 2 < a.rank(); ++i)
    if (!(a[i] == b[i])) return nullptr;
  return a[a.rank() - 2] == w[0] && a.back() == w[1] ? expand->input(0) : nullptr;
}

/// Weights that only layers like this one read are transposed here, once: one body fewer than with an attribute that
/// says so. No copy is made beside what others read (embeddings), nor of what is large, whose bytes the original
/// shares; those that came in 8 bits stay as they arrived.
void turn_weights(Product& product, const Options& options) {
  const Tensor* weights = product.b->constant();
  const auto alike = [](const Use& use) {
    return use.index == 1 && use.node->is("Gemm") && use.node->attrs.integer("transB") != 0 && adds_a_bias(*use.node);
  };
  if (!product.trans_b || !weights || weights->rank() != 2 || !std::ranges::all_of(product.b->uses(), alike)) return;
  if (static_cast<double>(weights->bytes()) > options.max_fold_bytes) return;
  if (weights->dtype() != DType::f32 || weights->elements() == 0 || imported_weights(*product.b, 0)) return;
  product.b = &product.b->graph().add_constant(transposed(*weights, {1, 0}), product.b->name());
  product.trans_b = false;
}

Attrs fused_attrs(const Product& product) {
  Attrs attrs;
  attrs.set("trans_a", product.trans_a ? 1 : 0)
      .set("trans_b", product.trans_b ? 1 : 0)
      .set("scale", Attr(product.scale))
      .set("has_bias", product.bias ? 1 : 0)
      .set("row_bias", product.left ? 1 : 0);
  return attrs;
}

Verdict check(const Node& node, const std::optional<Product>& product) {
  if (!product) return no("C is no constant vector of N", node.input(2)->name());
  for (const Value* operand : {product->a, product->b}) {
    if (operand->dtype() != DType::f32) return no("not float32", operand->name());
  }
  const bool gemm = node.is("Gemm");
  const Shape &a = product->a->shape(), &b = product->b->shape();
  if (!gemm && (!a.has_rank() || a.rank() < 2)) return no("rank 1 or unknown", product->a->name());
  if (!gemm && (!b.has_rank() || b.rank() < 2)) return no("rank 1 or unknown", product->b->name());
  return yes();
}

/// The fused form of one MatMul or Gemm in its place; null when it stays.
Node* convert(Node& node, Context& context, Extents& extents) {
  Graph& graph = node.graph();
  std::optional<Product> product = node.is("Gemm") ? read_gemm(node) : Product{node.input(0), node.input(1)};
  if (product) {
    Value* weights = context.model.opset() < 10 ? nullptr : repeated_weights(node, extents);
    if (weights) product->a = weights, product->left = true;
    // In front of weights a Transpose of x is better left to layout, where it often costs nothing.
    if (!product->b->constant()) product->look_through(product->a, product->trans_a);
    product->look_through(product->b, product->trans_b);
  }
  if (Verdict verdict = check(node, product); !verdict) {
    context.miss("matmul", &node, verdict.reason);
    return nullptr;
  }
  turn_weights(*product, context.options);
  std::vector<Value*> inputs = {in_graph(graph, product->a), in_graph(graph, product->b)};
  if (product->bias) inputs.push_back(in_graph(graph, product->bias));
  Node* fused =
      make_fused(graph, context, "matmul", "modelflow.MatMul", std::move(inputs), fused_attrs(*product), node);
  if (!fused) return nullptr;
  fused->name = node.name;
  take_place(*fused, node, context, "matmul", extents);
  return fused;
}

/// y * number behind the bare product.
int absorb_scale(Node*& fused, Context& context, Extents& extents) {
  Node* user = only_reader(*fused->output());
  if (!user || fused->attrs.integer("has_bias") || !(user->is("Mul") || user->is("Div"))) return 0;
  Value* value = fused->output();
  std::optional<float> number = scalar(user->input(user->input(0) == value ? 1 : 0));
  if (!number || (user->is("Div") && (user->input(0) != value || *number == 0))) return 0;
  const Shape y = extents.of(*value);
  if (!y.has_rank() || user->input(user->input(0) == value ? 1 : 0)->constant()->rank() > y.rank()) return 0;
  Attrs attrs = fused->attrs;
  const std::optional<float> scale = folded_scale(attrs.number("scale"), user->is("Mul") ? *number : 1.0 / *number);
  if (!scale) {
    context.miss("matmul-scale", user, "folding would overflow or lose digits");
    return 0;
  }
  attrs.set("scale", Attr(*scale));
  Node* next = make_fused(user->graph(), context, "matmul-scale", "modelflow.MatMul", fused->inputs(), attrs, *user);
  if (!next) return 0;
  next->name = fused->name;
  extents.forget(*user->output());
  extents.forget(*value);
  Graph& graph = user->graph();
  graph.replace(*user->output(), *next->output());
  graph.erase(*user);
  graph.erase(*fused);
  fused = next;
  context.hit("matmul-scale");
  return 1;
}

int run(Graph& graph, Context& context) {
  Extents extents;
  const auto version = graph.version();
  const std::vector<Node*> products = nodes_of(graph, {"MatMul", "Gemm"});
  std::vector<Node*> fused;
  for (Node* product : products) {
    if (Node* node = convert(*product, context, extents)) fused.push_back(node);
  }
  int changes = static_cast<int>(fused.size());
  for (auto it = fused.rbegin(); it != fused.rend(); ++it) {
    changes += absorb_scale(*it, context, extents);
    changes += absorb_epilogue(*it, context, extents, "matmul");
  }
  if (graph.version() != version) graph.prune();  // also weights that were turned for a layer that stayed
  return changes;
}

}  // namespace

Pass fuse_matmul() {
  return {.name = "fuse-matmul",
          .doc = "MatMul and Gemm with transposes, scale, bias, activation and residual sum -> modelflow.MatMul",
          .run = run};
}

}  // namespace modelflow::passes
