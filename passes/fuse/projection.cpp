// Linear layers read as a product and a sum, and made anew of some of their columns.
#include "passes/fuse/projection.h"

#include <algorithm>

#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// One number for each column, or zeros.
struct Part {
  const Tensor* tensor;  ///< null: zeros
  const Ints* columns;
};

/// The picked columns of several matrices of equally many rows side by side.
Tensor side_by_side(const std::vector<Part>& parts, std::int64_t rows, Dims dims) {
  const auto width = static_cast<std::size_t>(dims.back());
  return Tensor::make(DType::f32, std::move(dims), [&](std::byte* bytes) {
    auto* out = reinterpret_cast<float*>(bytes);
    for (const Part& part : parts) {
      if (part.tensor) {
        const auto from = part.tensor->as<float>();
        const std::size_t step = rows == 0 ? 0 : from.size() / static_cast<std::size_t>(rows);
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
          for (std::size_t i = 0; i < part.columns->size(); ++i)
            out[row * width + i] = from[row * step + static_cast<std::size_t>((*part.columns)[i])];
      }
      out += part.columns->size();
    }
  });
}

}  // namespace

std::optional<Projection> read_projection(const Value& y) {
  Projection read;
  Node* node = y.producer();
  if (!node) return {};
  if (node->is("Add")) {
    for (const std::size_t i : {0, 1})
      if (const Tensor* bias = node->input(i)->constant()) {
        read.bias = bias;
        node = node->input(1 - i)->producer();
        break;
      }
    if (!read.bias || !node || !only_reader(*node->output())) return {};
  }
  if (!node->is("MatMul") || !node->input(1)->constant() || node->input(0)->constant()) return {};
  read.x = node->input(0);
  read.weight = node->input(1)->constant();
  read.product = node;
  if (read.weight->rank() != 2 || read.weight->dtype() != DType::f32) return {};
  const std::size_t rank = rank_of(read.x).value_or(0);
  if (rank < 2) return {};
  const std::int64_t columns = read.weight->dims()[1];
  if (read.bias && (read.bias->dtype() != DType::f32 || read.bias->rank() > rank || read.bias->rank() < 1 ||
                    read.bias->dims().back() != columns || read.bias->elements() != columns))
    return {};
  return read;
}

Value& product_of(Value& x, const std::vector<Columns>& parts, const std::string& name, Build& build) {
  std::vector<Part> weights, biases;
  std::int64_t width = 0;
  for (const Columns& part : parts) {
    weights.push_back({part.of->weight, part.list});
    biases.push_back({part.of->bias, part.list});
    width += static_cast<std::int64_t>(part.list->size());
  }
  const std::int64_t rows = parts.front().of->weight->dims()[0];
  const auto make = [&](const char* op, std::vector<Value*> inputs) -> Value& {
    Value& made = build.op(op, std::move(inputs));
    made.producer()->name = build.graph().unique_name(name);
    return made;
  };
  Value& product = make("MatMul", {&x, &build.constant(side_by_side(weights, rows, {rows, width}), name + "_weight")});
  if (std::ranges::all_of(biases, [](const Part& part) { return !part.tensor; })) return product;
  return make("Add", {&product, &build.constant(side_by_side(biases, 1, {width}), name + "_bias")});
}

}  // namespace modelflow::passes
