// Means of the reference in double precision.
#include "src/verify/exact_means.h"

#include <span>
#include <vector>

#include "src/verify/widened.h"

namespace modelflow {
namespace {

/// Adds nodes in front of one, by their ops.
class Before {
 public:
  explicit Before(Node& node) : graph_(node.graph()), node_(node) {}

  Value& op(const char* name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return *graph_.add(name, std::move(inputs), {.before = &node_, .attrs = std::move(attrs)}).output();
  }
  Value& cast(Value& value, DType type) { return cast_to(graph_, value, type, &node_); }
  /// Over the axes behind the channels.
  Value& mean(Value& x, std::size_t rank, std::int64_t opset) {
    std::vector<std::int64_t> axes;
    for (std::size_t axis = 2; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    if (opset < 18) return op("ReduceMean", {&x}, {{"axes", Attr(axes)}});
    return op("ReduceMean", {&x, &integers(axes)});
  }
  /// [channels] -> [channels, 1, ...]
  Value& beside(Value& factors, std::size_t rank) {
    std::vector<std::int64_t> dims(rank - 1, 1);
    dims[0] = 0;
    return op("Reshape", {&cast(factors, DType::f64), &integers(dims)});
  }
  Value& number(double x) { return graph_.add_constant(Tensor::of<double>({}, {x})); }

 private:
  Value& integers(const std::vector<std::int64_t>& list) {
    return graph_.add_constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(list.size())}, std::span(list)));
  }

  Graph& graph_;
  Node& node_;
};

void write_out(Node& norm, std::int64_t opset) {
  const std::size_t rank = norm.input(0)->shape().rank();
  Before add(norm);
  Value& x = add.cast(*norm.input(0), DType::f64);
  Value& centered = add.op("Sub", {&x, &add.mean(x, rank, opset)});
  Value& variance = add.mean(add.op("Mul", {&centered, &centered}), rank, opset);
  Value& epsilon = add.number(norm.attrs.number("epsilon", 1e-5F));
  Value& normal = add.op("Div", {&centered, &add.op("Sqrt", {&add.op("Add", {&variance, &epsilon})})});
  Value& scaled = add.op("Mul", {&normal, &add.beside(*norm.input(1), rank)});
  Value& shifted = add.op("Add", {&scaled, &add.beside(*norm.input(2), rank)});
  norm.graph().replace(*norm.output(), add.cast(shifted, DType::f32));
  norm.graph().erase(norm);
}

bool is_image_norm(const Node& node) {
  return node.input(0) && node.input(1) && node.input(2) && node.input(0)->shape().has_rank() &&
         node.input(0)->shape().rank() > 2;
}

}  // namespace

std::optional<Model> with_exact_means(const Model& model) {
  const std::int64_t opset = model.opset();  // ops broadcast from 7 on
  return with_exact(
      model,
      [opset](const Node& node) {
        return node.is("ReduceMean") || node.is("ReduceSum") || (opset >= 7 && node.is("InstanceNormalization"));
      },
      [opset](Node& node) {
        if (!node.is("InstanceNormalization"))
          widen(node, {0});
        else if (is_image_norm(node))
          write_out(node, opset);
      });
}

}  // namespace modelflow
