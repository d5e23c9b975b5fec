// Linear layers read as a product and a sum, and made anew of some of their columns.
#include "passes/fuse/projection.h"

#include <algorithm>

#include "passes/graph/extents.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// The picked columns of several layers' weights side by side: [channels, width].
Tensor weights_of(const std::vector<Columns>& parts, std::int64_t width) {
  const std::int64_t channels = parts.front().of->channels();
  return Tensor::make(DType::f32, {channels, width}, [&](std::byte* bytes) {
    auto* out = reinterpret_cast<float*>(bytes);
    for (const auto& [of, list] : parts) {
      const auto from = of->weight->as<float>();
      const auto rows = static_cast<std::size_t>(channels);
      const std::size_t down = of->transposed ? 1 : static_cast<std::size_t>(of->columns());
      const std::size_t across = of->transposed ? rows : 1;
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < list->size(); ++i)
          out[row * static_cast<std::size_t>(width) + i] =
              from[row * down + static_cast<std::size_t>((*list)[i]) * across];
      out += list->size();
    }
  });
}

/// Their biases, zeros where a layer has none: [width].
Tensor biases_of(const std::vector<Columns>& parts, std::int64_t width) {
  return Tensor::make(DType::f32, {width}, [&](std::byte* bytes) {
    auto* out = reinterpret_cast<float*>(bytes);
    for (const auto& [of, list] : parts)
      for (const std::int64_t column : *list)
        *out++ = of->bias ? of->bias->as<float>()[static_cast<std::size_t>(column)] : 0.0F;
  });
}

/// What a Gemm adds to how a product is read; false where it is no plain x * weight + bias.
bool read_gemm(const Node& gemm, Projection& read) {
  const Attrs& attrs = gemm.attrs;
  if (attrs.integer("transA") != 0 || attrs.number("alpha", 1) != 1 || attrs.number("beta", 1) != 1) return false;
  read.transposed = attrs.integer("transB") != 0;
  const Value* c = gemm.input(2);
  if (!c) return true;
  if (read.bias || !c->constant()) return false;
  read.bias = c->constant();
  return true;
}

}  // namespace

std::optional<Projection> read_projection(const Value& y) {
  Projection read;
  Node* node = y.producer();
  if (!node) return {};
  const bool sum = node->is("Add");
  if (sum) {
    for (const std::size_t i : {0, 1})
      if (const Tensor* bias = node->input(i)->constant()) {
        read.bias = bias;
        node = node->input(1 - i)->producer();
        break;
      }
    if (!read.bias || !node) return {};
  }
  if (!node->is("MatMul") && !(node->is("Gemm") && read_gemm(*node, read))) return {};
  if (sum && !only_reader(*node->output())) return {};  // the product's: other ops may have no first output
  if (!node->input(1)->constant() || node->input(0)->constant()) return {};
  read.x = node->input(0);
  read.weight = node->input(1)->constant();
  read.product = node;
  if (read.weight->rank() != 2 || read.weight->dtype() != DType::f32) return {};
  const std::size_t rank = rank_of(read.x).value_or(0);
  if (rank < 2) return {};
  if (read.bias && (read.bias->dtype() != DType::f32 || read.bias->rank() > rank || read.bias->rank() < 1 ||
                    read.bias->dims().back() != read.columns() || read.bias->elements() != read.columns()))
    return {};
  return read;
}

Value& product_of(Value& x, const std::vector<Columns>& parts, const std::string& name, Build& build) {
  std::int64_t width = 0;
  for (const Columns& part : parts) width += static_cast<std::int64_t>(part.list->size());
  const auto make = [&](const char* op, std::vector<Value*> inputs) -> Value& {
    Value& made = build.op(op, std::move(inputs));
    made.producer()->name = build.graph().unique_name(name);
    return made;
  };
  Value& product = make("MatMul", {&x, &build.constant(weights_of(parts, width), name + "_weight")});
  if (std::ranges::none_of(parts, [](const Columns& part) { return part.of->bias; })) return product;
  return make("Add", {&product, &build.constant(biases_of(parts, width), name + "_bias")});
}

}  // namespace modelflow::passes
