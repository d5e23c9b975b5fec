// Which extents are equal although nobody knows their number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Shapes as far as the structure of the graph tells: where the size of a dim is unknown it gets a symbol, and two dims
/// with the same symbol are equal although nobody knows their number. A 3x3 convolution with pads 1 keeps its extents,
/// two convolutions with the same window over equal extents have equal extents.
///
///     Extents extents(graph);
///     extents.of(*add.input(0)) == extents.of(*add.input(1));    // same shape, proven
///
/// Remembers what it was asked: tell it which values are about to go, so that a new one at the same address is new.
class Extents {
 public:
  explicit Extents(const Graph& graph);
  /// Numbers instead of symbols, for costs: what follows from `context.typical`, else those of modelflow/typical.h.
  Extents(const Graph& graph, const Context& context);

  /// Rank unknown only when nothing tells it.
  Shape of(const Value& value);
  /// Bytes of a tensor of that shape, float32 unless it is uint8; dims that no number is known for count as one.
  double bytes(const Value& value);

  void forget(const Value& value) { known_.erase(&value); }

 private:
  void prepare(const Graph& graph);
  Shape compute(const Value& value);
  Shape derived(const Node& node);
  Shape inferred(const Node& node);
  Dim declared(const Value& value, std::size_t axis) const;

  void read_typical(const Model& model, const std::map<std::string, Dims>& typical);

  bool numbers_ = false;
  std::map<std::string, std::int64_t> symbols_;        ///< typical numbers for them
  std::unordered_map<const Value*, Dims> input_dims_;  ///< and for graph inputs
  std::unordered_map<const Value*, Shape> known_;
};

/// Computes every element of its result from the elements at the same place of its inputs, which broadcast.
bool elementwise(const Node& node);
/// The single reader of a value inside its own graph; null when it has several, or is a graph output.
Node* only_reader(const Value& value);

}  // namespace modelflow::passes
