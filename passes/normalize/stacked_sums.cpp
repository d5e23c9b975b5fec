// The sum over values that were stacked for it, perhaps with a weight each: selective kernels (SKNet, arXiv
// 1903.06586), the weighted features of EfficientDet (arXiv 1911.09070) -> a sum of products, which needs no stack.
#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

/// Each more is read on its own; a fused kernel takes so many.
constexpr std::size_t kMostParts = 8;

/// `axis` of the sum, counted in an operand of fewer axes; negative where the operand does not have it.
std::int64_t axis_in(const Value& operand, std::int64_t axis, std::size_t rank) {
  return axis - static_cast<std::int64_t>(rank - operand.shape().rank());
}

/// The Concat that stacks a few values along `axis`; null for anything else.
Node* stack(const Value& value, std::int64_t axis) {
  Node* concat = value.producer();
  if (!concat || !concat->is("Concat") || axis < 0) return nullptr;
  const std::size_t count = concat->inputs().size();
  if (count < 2 || count > kMostParts) return nullptr;
  const std::optional<Ints> joined =
      positive({concat->attrs.integer("axis")}, static_cast<std::int64_t>(value.shape().rank()));
  if (joined != Ints{axis}) return nullptr;
  for (const Value* part : concat->inputs())
    if (rank_of(part) != value.shape().rank() || part->shape()[static_cast<std::size_t>(axis)].number() != 1)
      return nullptr;
  return concat;
}

/// The Reshape that makes an axis of groups of channels of an image, [N, n * C, H, W] -> [N, n, C, H, W], and sees them
/// as a stack along `axis`; null for anything else.
Node* groups(const Value& value, std::int64_t axis) {
  Node* reshape = value.producer();
  if (!reshape || !reshape->is("Reshape") || axis != 1 || value.shape().rank() != 5) return nullptr;
  const Value* image = reshape->input(0);
  if (rank_of(image) != 4) return nullptr;
  const Shape &from = image->shape(), &to = value.shape();
  const std::optional<std::int64_t> count = to[1].number(), channels = to[2].number();
  if (!count || !channels || *count < 2 || *count > static_cast<std::int64_t>(kMostParts) || *channels < 1)
    return nullptr;
  const bool split = from[1].number() == *count * *channels && leading_alike(from, to, 1);
  return split && from[2] == to[3] && from[3] == to[4] ? reshape : nullptr;
}

class Sum {
 public:
  explicit Sum(Node& reduce) : reduce_(reduce) {}

  /// Whether it is one; `why` says what is missing where it nearly is.
  Verdict read() {
    const Value& x = *reduce_.input(0);
    if (!rank_of(&x)) return no("");
    rank_ = x.shape().rank();
    const std::optional<Ints> given = setting(reduce_, "axes", 1);
    const std::optional<Ints> axes = given ? positive(*given, static_cast<std::int64_t>(rank_)) : std::nullopt;
    if (!axes || axes->size() != 1) return no("");
    axis_ = axes->front();
    const Node* product = x.producer();
    if (!product || !product->is("Mul")) return find(x) ? floats(x) : no("");
    for (const std::size_t i : {0, 1}) {
      const Value &stacked = *product->input(i), &other = *product->input(1 - i);
      if (!rank_of(&stacked) || !rank_of(&other)) continue;
      weights_ = product->input(1 - i);
      if (find(stacked)) break;
    }
    if (!stack_) return no("");
    if (x.uses().size() != 1 || x.is_graph_output()) return no("the products are read elsewhere", x.name());
    const std::int64_t axis = axis_in(*weights_, axis_, rank_);
    if (axis < 0) return floats(x);
    const Dim& extent = weights_->shape()[static_cast<std::size_t>(axis)];
    each_ = extent.number() == static_cast<std::int64_t>(count_);
    if (!each_ && extent.number() != 1) return no("it is not known to be a number for each", weights_->name());
    return floats(x);
  }

  void replace(Context& context) {
    Build build(reduce_.graph(), reduce_, context);
    const std::vector<Value*> weights = weights_of_parts(build), parts = stacked_parts(build);
    Value* sum = nullptr;
    for (std::size_t i = 0; i < count_; ++i) {
      Value* part = parts[i];
      if (weights_) part = &build.op("Mul", {part, weights[i]});
      sum = sum ? &build.op("Add", {sum, part}) : part;
    }
    reduce_.graph().replace(*reduce_.output(), *sum);
    context.hit("stacked-sum");
  }

 private:
  static Verdict floats(const Value& x) {
    return x.dtype() == DType::f32 || x.dtype() == DType::f64 ? yes() : no("is no float32", x.name());
  }

  bool keeps_axis() const { return reduce_.attrs.integer("keepdims", 1) != 0; }

  bool find(const Value& stacked) {
    const std::int64_t axis = axis_in(stacked, axis_, rank_);
    stack_ = stack(stacked, axis);
    if (!stack_ && !keeps_axis()) stack_ = groups(stacked, axis);
    if (stack_) count_ = static_cast<std::size_t>(*stacked.shape()[static_cast<std::size_t>(axis)].number());
    return stack_;
  }

  std::vector<Value*> stacked_parts(Build& build) {
    if (stack_->is("Reshape")) return split(build, *stack_->input(0), 1, stack_->output()->shape()[2].value());
    std::vector<Value*> parts;
    for (Value* part : stack_->inputs()) parts.push_back(&squeezed(build, *part));
    return parts;
  }

  /// `each` of the axis to every part.
  std::vector<Value*> split(Build& build, Value& value, std::int64_t axis, std::int64_t each) const {
    Value& sizes = build.constant(tensor_of(Ints(count_, each)), "split");
    return build.op("Split", {&value, &sizes}, {{"axis", axis}}, count_).producer()->outputs();
  }

  /// Without the axis of the sum, unless the sum keeps it.
  Value& squeezed(Build& build, Value& value) {
    const std::int64_t axis = axis_in(value, axis_, rank_);
    if (axis < 0 || keeps_axis()) return value;
    return build.op("Squeeze", {&value, &build.constant(tensor_of({axis}), "axes")});
  }

  std::vector<Value*> weights_of_parts(Build& build) {
    if (!weights_) return {};
    if (!each_) return std::vector<Value*>(count_, &squeezed(build, *weights_));
    std::vector<Value*> parts = split(build, *weights_, axis_in(*weights_, axis_, rank_), 1);
    for (Value*& part : parts) part = &squeezed(build, *part);
    return parts;
  }

  Node& reduce_;
  std::size_t rank_ = 0;
  std::int64_t axis_ = 0;
  Node* stack_ = nullptr;  ///< a Concat of `count_` values or a Reshape to as many groups
  std::size_t count_ = 0;
  Value* weights_ = nullptr;
  bool each_ = false;  ///< weights have one for each part
};

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 13) return 0;
  int changes = 0;
  for (Node* node : nodes_of(graph, {"ReduceSum"})) {
    if (!node->input(0) || !node->output()) continue;
    Sum sum(*node);
    const Verdict verdict = sum.read();
    if (!verdict && !verdict.reason.empty()) context.miss("stacked-sum", node, verdict.reason);
    if (!verdict) continue;
    sum.replace(context);
    ++changes;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass sum_stacked() {
  return {.name = "sum-stacked",
          .doc = "The sum over a few stacked values, with a weight for each -> a sum of products (SKNet, EfficientDet)",
          .run = run};
}

}  // namespace modelflow::passes
