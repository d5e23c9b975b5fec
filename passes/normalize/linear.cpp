// Gemm and MatMul with what stands around them (flattened rows, biases) become one spelling.
#include "passes/normalize/linear.h"

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

using namespace pattern;

Verdict plain_gemm(const Match& m) {
  const Attrs& attrs = m.node("product").attrs;
  if (attrs.integer("transA") != 0) return no("the left operand is transposed");
  if (attrs.number("alpha", 1) != 1) return no("alpha is not 1");
  return m["c"] && attrs.number("beta", 1) != 1 ? no("beta is not 1") : yes();
}

Verdict bias_is_vector(const Match& m) {
  for (const char* name : {"b", "c"})
    if (const Value* bias = m[name]; bias && rank_of(bias).value_or(9) > 1)
      return no("the bias is no vector", bias->name());
  return yes();
}

namespace {

/// How many dims stand in front of those that make up `width` together; nothing when none do.
std::optional<std::size_t> dims_before(const Shape& shape, std::int64_t width) {
  std::int64_t product = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    if (!shape[i].known() || shape[i].value() < 1) return {};
    product *= shape[i].value();
    // Of several, as [.., 1, 8] for 8, the fewest.
    if (product == width) return i;
  }
  return {};
}

std::int64_t columns_of(const Match& m) {
  const bool transposed = m.node("product").attrs.integer("transB") != 0;
  return m.constant("w").dims()[transposed ? 0 : 1];
}

/// What is flattened in front of the product; null when nothing is. Several products may read it: it is no part of the
/// match.
Value* flattened(const Match& m) {
  const Node* reshape = m.value("flat").producer();
  return reshape && reshape->is("Reshape") ? reshape->input(0) : nullptr;
}

/// The reshapes only flatten the leading dims of x and bring them back. What follows them may be several dims, heads
/// and their size, on either side.
Verdict leading_dims_return(const Match& m) {
  if (!flattened(m)) return no("nothing is flattened in front of it", m.value("flat").name());
  const Value &x = *flattened(m), &flat = m.value("flat"), &y = *m.root().output();
  for (const Value* v : {&x, &flat, &y})
    if (!v->type.is_tensor() || !v->shape().has_rank()) return no("its rank is unknown", v->name());
  if (flat.shape().rank() != 2 || m.constant("w").rank() != 2) return no("the product is of another rank", flat.name());
  if (!flat.shape()[1].known()) return no("its width is unknown", flat.name());
  const std::optional<std::size_t> lead = dims_before(x.shape(), flat.shape()[1].value());
  const bool matrix = x.shape().rank() == 2 && y.shape().rank() == 2;
  if (!lead || *lead < (matrix ? 1 : 2)) return no("rows are reshaped too", x.name());
  const std::optional<std::size_t> least = dims_before(y.shape(), columns_of(m));
  if (!least || *least < *lead) return no("rows are reshaped too", y.name());
  for (std::size_t i = *lead; i < *least; ++i)
    if (!(y.shape()[i].number() == 1)) return no("rows are reshaped too", y.name());
  return leading_alike(x.shape(), y.shape(), *lead) ? yes() : no("the leading dims may change", y.name());
}

/// `value` with its dims from `lead` on replaced by these.
Value& ending_in(Build& build, Value& value, std::size_t lead, std::span<const Dim> dims) {
  if (rank_of(&value) == lead + 1 && dims.size() == 1) return value;
  Ints target(lead, 0);
  for (const Dim& dim : dims) target.push_back(dim.value());
  return build.op("Reshape", {&value, &build.constant(tensor_of(target), "shape")});
}

std::vector<Value*> on_all_dims(const Match& m, Build& build) {
  const Shape &y = m.root().output()->shape(), &flat = m.value("flat").shape();
  Value& x = *flattened(m);
  const std::size_t lead = *dims_before(x.shape(), flat[1].value());
  Value* w = &m.value("w");
  if (m.node("product").attrs.integer("transB") != 0) w = &build.op("Transpose", {w}, {{"perm", Ints{1, 0}}});
  Value* product = &build.op("MatMul", {&ending_in(build, x, lead, std::span(&flat[1], 1)), w});
  if (Value* c = m["c"]) product = &build.op("Add", {product, c});
  return {&ending_in(build, *product, lead, std::span(y.dims()).subspan(lead))};
}

/// The product that `heads` shows in other extents; null when it is none, or somebody else reads it.
const Node* product_behind(const Value& heads) {
  const Value* value = &heads;
  for (const Node* node = value->producer(); node && only_reader(*value); node = value->producer()) {
    if (node->is("MatMul"))
      return rank_of(node->input(1)) == 2 && value != &heads && rank_of(value).value_or(0) >= 2 ? node : nullptr;
    if (!node->is("Reshape") && !node->is("Squeeze") && !node->is("Unsqueeze")) return nullptr;
    value = node->input(0);
  }
  return nullptr;
}

Dims without_leading_ones(Dims dims) {
  while (dims.size() > 1 && dims.front() == 1) dims.erase(dims.begin());
  return dims;
}

/// The heads of a linear layer's result plus one number for each place in them.
Verdict bias_of_heads(const Match& m) {
  const Value &heads = m.value("heads"), &c = m.value("c");
  const Node* product = product_behind(heads);
  if (!product) return no("is no view of a product alone", heads.name());
  const Dims dims = without_leading_ones(c.constant()->dims());
  const Shape &rows = product->output()->shape(), &shape = heads.shape();
  const std::size_t lead = rows.rank() - 1;
  if (!shape.has_rank() || shape.rank() != lead + dims.size() || c.constant()->rank() > shape.rank())
    return no("the bias is of another rank", c.name());
  if (rows.back().number() != element_count(dims)) return no("the bias has not one number per column", c.name());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (shape[lead + i].number() != dims[i]) return no("the bias does not stand over the last dims", c.name());
  return leading_alike(rows, shape, lead) ? yes() : no("the leading dims may change", heads.name());
}

std::vector<Value*> bias_before_heads(const Match& m, Build& build) {
  const Tensor& c = m.constant("c");
  Value& rows = *product_behind(m.value("heads"))->output();
  const Shape heads = Shape::of(without_leading_ones(c.dims()));
  Value& sum = build.op("Add", {&rows, &build.constant(c.reshaped({c.elements()}), m.value("c").name())});
  return {&ending_in(build, sum, rows.shape().rank() - 1, heads.dims())};
}

/// C that is computed is a sum like any other, a residual perhaps. Gemm takes no C from opset 11 on.
Verdict computed_c(const Match& m) {
  const Value& c = m.value("c");
  if (c.constant()) return no("C is constant: a bias", c.name());
  return m.node("product").attrs.number("beta", 1) == 1 ? yes() : no("beta is not 1");
}

std::vector<Value*> gemm_and_sum(const Match& m, Build& build) {
  Attrs attrs = m.node("product").attrs;
  attrs.erase("beta");
  if (build.opset() < 11) return {};
  return {&build.op("Add", {&build.op("Gemm", {m["a"], m["b"]}, std::move(attrs)), m["c"]})};
}

}  // namespace

Pass normalize_linear() {
  const Pattern flat = any("flat"), w = constant("w");
  const auto restored = [](Pattern y) { return open(op("Reshape", {std::move(y)})); };
  const Pattern gemm = op("Gemm", {flat, w, optional(any("c"))}, "product");
  const Pattern matmul = op("MatMul", {flat, w}, "product");
  std::vector<Rule> rules = {
      {.name = "gemm-between-reshapes",
       .doc = "Reshape(Gemm(Reshape(x), w, b)) -> MatMul(x, w) + b",
       .from = restored(gemm),
       .when = {plain_gemm, bias_is_vector, leading_dims_return},
       .into = on_all_dims},
      {.name = "matmul-between-reshapes",
       .doc = "Reshape(MatMul(Reshape(x), w)) -> MatMul(x, w)",
       .from = restored(matmul),
       .when = {leading_dims_return},
       .into = on_all_dims},
      {.name = "biased-matmul-between-reshapes",
       .doc = "Reshape(MatMul(Reshape(x), w) + b) -> MatMul(x, w) + b",
       .from = restored(matmul + constant("c")),
       .when = {bias_is_vector, leading_dims_return},
       .into = on_all_dims},
      {.name = "bias-behind-heads",
       .doc = "Reshape(x w) + b over heads and their size -> Reshape(x w + b)",
       .from = any("heads") + constant("c"),
       .when = {bias_of_heads},
       .into = bias_before_heads},
      {.name = "gemm-with-computed-sum",
       .doc = "Gemm(a, b, c) with a computed c -> Gemm(a, b) + c",
       .from = op("Gemm", {any("a"), any("b"), any("c")}, "product"),
       .when = {computed_c},
       .into = gemm_and_sum},
      {.name = "sum-of-two",
       .doc = "Sum(a, b) -> a + b, as which a product takes in a residual",
       .from = op("Sum", {any("a"), any("b")}),
       .when = {},
       .into = [](const Match& m, Build& build) -> std::vector<Value*> {
         if (build.opset() < 7) return build.refuse(no("ONNX Runtime has no Add below opset 7"));
         return {&build.op("Add", {m["a"], m["b"]})};
       }},
  };
  for (const auto& more : {turned_linear_rules(), left_linear_rules(), head_scale_rules(), repeated_product_rules(),
                           broadcast_parts_rules()})
    rules.insert(rules.end(), more.begin(), more.end());
  return rewrite("normalize-linear", "Writes linear layers without the reshapes and transposes around them.",
                 std::move(rules));
}

}  // namespace modelflow::passes
