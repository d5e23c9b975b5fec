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
  const Tensor* weight = nullptr;  ///< [channels, columns]
  const Tensor* bias = nullptr;    ///< one number per column; null: none
  Node* product = nullptr;
};
/// What computes `y`: MatMul, and Add where nobody else reads the product.
std::optional<Projection> read_projection(const Value& y);

/// Some columns of a projection.
struct Columns {
  const Projection* of;
  const Ints* list;
};
/// x times the columns of all parts side by side, and their biases: one product, called `name`.
Value& product_of(Value& x, const std::vector<Columns>& parts, const std::string& name, Build& build);

}  // namespace modelflow::passes
