// Random numbers in a graph: RandomUniformLike where ONNX Runtime has it, else digits of the values themselves.
#pragma once

#include <cstdint>

#include "modelflow/model.h"
#include "tests/fuzz/dice.h"

namespace modelflow::fuzz {

/// Half of what the last digit of numbers near 1 is worth.
double last_digit(DType dtype);

class Noise {
 public:
  Noise(std::uint64_t seed, std::int64_t opset) : dice_(seed), odd_(seed % 2 == 1), opset_(opset) {}

  bool axes_are_inputs() const { return opset_ >= 18; }
  bool has_where() const { return opset_ >= 9; }
  bool has_is_inf() const { return opset_ >= 10; }
  /// Whether what nearly vanishes beside the rest of a tensor is 0 this time.
  bool drops_dust() const { return odd_ && opset_ >= 11; }

  /// Random numbers of the value's shape between low and high.
  Value* draws(Graph& graph, Value& like, double low, double high, Node* before);
  static Value* constant(Graph& graph, DType dtype, double value);

 private:
  Value* hashed(Graph& graph, Value& like, double low, double high, Node* before);
  Attrs random(double low, double high, DType dtype);

  Dice dice_;
  bool odd_;
  std::int64_t opset_;
};

}  // namespace modelflow::fuzz
