// Linear layers that make the heads of an attention, by the columns of their weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "modelflow/pass.h"
#include "modelflow/pattern.h"

namespace modelflow::passes {

/// x [..., channels] * weight + bias, both constant and float32.
struct Projection {
  Value* x = nullptr;
  const Tensor* weight = nullptr;  ///< [channels, columns]; transposed: [columns, channels]
  bool transposed = false;
  const Tensor* bias = nullptr;  ///< one number per column; null: none
  Node* product = nullptr;

  std::size_t columns_axis() const { return transposed ? 0 : 1; }
  std::int64_t columns() const { return weight->dims()[columns_axis()]; }
  std::int64_t channels() const { return weight->dims()[1 - columns_axis()]; }
};
/// What computes `y`: Gemm or MatMul, and Add where nobody else reads the product.
std::optional<Projection> read_projection(const Value& y);

/// Some columns of a projection.
struct Columns {
  const Projection* of;
  const Ints* list;
};
/// x times the columns of all parts side by side, and their biases: one product, called `name`.
Value& product_of(Value& x, const std::vector<Columns>& parts, const std::string& name, Build& build);

}  // namespace modelflow::passes
