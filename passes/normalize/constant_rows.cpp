// Constant rows beside others, and a constant added to all of them: the class token and positions of vision
// transformers -> Pad, and one sum (ViT, DeiT with its second token, CLIP, BEiT).
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

constexpr const char* kRule = "constant-rows";

/// Operands of a Concat along `axis`: constants and one that is none, which has `before` rows in front of it and
/// `after` behind.
struct Rows {
  std::size_t axis = 0;
  Value* x = nullptr;
  std::int64_t before = 0, own = 0, after = 0;
  std::vector<std::pair<const Tensor*, std::int64_t>> constants = {};  ///< and where their first row lies

  std::int64_t all() const { return before + own + after; }
};

/// What the operand repeats along other axes, or is; null where it is no such constant of this rank.
const Tensor* repeated(const Value& operand, std::size_t rank, std::size_t axis) {
  const Node* expand = made_by(&operand, "Expand");
  const Tensor* constant = (expand ? *expand->input(0) : operand).constant();
  if (!constant || constant->dtype() != DType::f32 || constant->rank() != rank) return nullptr;
  const Shape& shape = operand.shape();
  const bool same_rows = shape.has_rank() && shape.rank() == rank && shape[axis].number() == constant->dims()[axis];
  return same_rows ? constant : nullptr;
}

Verdict read(const Node& concat, Rows& rows) {
  const std::optional<std::size_t> rank = rank_of(concat.output());
  const std::optional<Ints> axis =
      rank ? positive({concat.attrs.integer("axis")}, static_cast<std::int64_t>(*rank)) : std::nullopt;
  if (!axis) return no("its rank is unknown", concat.output()->name());
  rows.axis = static_cast<std::size_t>(axis->front());
  for (Value* operand : concat.inputs()) {
    if (const Tensor* constant = repeated(*operand, *rank, rows.axis)) {
      rows.constants.emplace_back(constant, rows.all());
      (rows.x ? rows.after : rows.before) += constant->dims()[rows.axis];
      continue;
    }
    const Shape& shape = operand->shape();
    const bool known = rank_of(operand) == *rank && shape[rows.axis].number();
    if (rows.x || operand->dtype() != DType::f32 || !known)
      return no("more than one operand is not constant, or its rows are not known", operand->name());
    rows.x = operand;
    rows.own = *shape[rows.axis].number();
  }
  return rows.x && !rows.constants.empty() ? yes() : no("has no constant rows beside others", concat.output()->name());
}

/// The extents of the sum, those of both where they differ in nothing but axes of extent 1; nothing where they do.
std::optional<Dims> extents_of(const Tensor& added, const Rows& rows) {
  Dims dims = added.dims();
  for (const auto& [constant, at] : rows.constants)
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::int64_t extent = constant->dims()[i];
      if (i == rows.axis || extent == 1 || extent == dims[i]) continue;
      if (dims[i] != 1) return std::nullopt;
      dims[i] = extent;
    }
  return dims;
}

/// Where in `tensor`, whose axes of extent 1 repeat, the element of `index` lies.
std::size_t place(const Tensor& tensor, const Dims& index) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at = at * tensor.dims()[i] + (tensor.dims()[i] == 1 ? 0 : index[i]);
  return static_cast<std::size_t>(at);
}

/// `added` plus the constant rows where they lie.
Tensor sum(const Tensor& added, const Rows& rows, const Dims& dims) {
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    auto* to = reinterpret_cast<float*>(bytes);
    Dims index(dims.size(), 0);
    for (std::int64_t i = element_count(dims); i > 0; --i) {
      float number = added.as<float>()[place(added, index)];
      for (const auto& [constant, first] : rows.constants) {
        Dims in_rows = index;
        in_rows[rows.axis] -= first;
        const std::int64_t row = in_rows[rows.axis];
        if (row >= 0 && row < constant->dims()[rows.axis]) number += constant->as<float>()[place(*constant, in_rows)];
      }
      *to++ = number;
      for (std::size_t axis = dims.size(); axis-- > 0 && ++index[axis] == dims[axis];) index[axis] = 0;
    }
  });
}

/// Where 0 and the sum make something else of it.
bool loses_sign(float number) { return number == 0 && std::signbit(number); }

Verdict pad(Node& add, std::size_t side, Context& context) {
  Node* concat = add.input(side)->producer();
  const Tensor* added = add.input(1 - side)->constant();
  if (!added || added->dtype() != DType::f32) return no("adds no float32 constant", add.input(1 - side)->name());
  if (only_reader(*concat->output()) != &add) return no("is read elsewhere", concat->output()->name());
  Rows rows;
  if (Verdict verdict = read(*concat, rows); !verdict) return verdict;
  if (added->rank() != rank_of(concat->output()) || added->dims()[rows.axis] != rows.all())
    return no("adds no number of its own to each row", add.input(1 - side)->name());
  const std::optional<Dims> dims = extents_of(*added, rows);
  if (!dims) return no("the constants differ in extents", add.input(1 - side)->name());
  Tensor constant = sum(*added, rows, *dims);
  if (std::ranges::any_of(constant.as<float>(), loses_sign))
    return no("a sum is -0, which 0 would take the sign of", add.input(1 - side)->name());
  const std::size_t rank = added->rank();
  Ints pads(2 * rank, 0);
  pads[rows.axis] = rows.before;
  pads[rank + rows.axis] = rows.after;
  Build build(add.graph(), add, context);
  constexpr std::int64_t kPadsAreInputs = 11;
  Value& padded = context.model.opset() < kPadsAreInputs
                      ? build.op("Pad", {rows.x}, {{"pads", pads}})
                      : build.op("Pad", {rows.x, &build.constant(tensor_of(pads), "pads")});
  Value& result = build.op("Add", {&padded, &build.constant(std::move(constant), "rows")});
  add.graph().replace(*add.output(), result);
  context.hit(kRule);
  return yes();
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* add : nodes_of(graph, {"Add"}))
    for (const std::size_t side : {0, 1}) {
      if (!made_by(add->input(side), "Concat")) continue;
      const Verdict verdict = pad(*add, side, context);
      if (!verdict) context.miss(kRule, add, verdict.reason);
      changes += verdict.ok;
      if (verdict) break;
    }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass pad_constant_rows() {
  return {.name = "pad-constant-rows",
          .doc = "Constant rows beside others and a constant added to all of them (class tokens) -> Pad and one sum",
          .run = run};
}

}  // namespace modelflow::passes
