// The sum inside a gate of a recurrent cell.
#pragma once

#include <vector>

#include "passes/normalize/iteration.h"

namespace modelflow::passes {

/// What stands inside a gate of a recurrent cell: products of values of one step with columns of constants, plus
/// constants.
struct GateSum {
  struct Product {
    const Value* x;
    const Tensor* weight;  ///< [rows, columns], or [columns, rows] when transposed
    bool transposed = false;
    std::int64_t row = 0, rows = 0, column = 0;  ///< where the part that is meant begins
  };
  struct Bias {
    const Tensor* tensor;  ///< one element, or one per column
    std::int64_t first = 0;
  };
  std::vector<Product> products;
  std::vector<Bias> biases;
  std::vector<Bias> peepholes;  ///< what the memory of the cell is multiplied by, element by element

  /// [columns, rows] as ONNX has weights of gates: of all products with `x`, added up. Empty when there are none.
  std::vector<float> weights_of(const Value* x, std::int64_t columns) const;
  std::vector<float> bias(std::int64_t columns) const;
  std::vector<float> peephole(std::int64_t columns) const;
};

/// Reads `value` [batch, columns] as such a sum; false when it is anything else. `memory`: what peepholes may look at.
bool read_gate_sum(Value& value, std::int64_t columns, const Iteration& iteration, GateSum& sum,
                   const Value* memory = nullptr);

}  // namespace modelflow::passes
