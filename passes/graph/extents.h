// Which extents are equal although nobody knows their number.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "modelflow/graph.h"

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
  /// Instead of symbols: typical numbers for what a graph input leaves open (`first` for the first axis), for costs.
  Extents(const Graph& graph, std::int64_t first, std::int64_t further);

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

  bool typical_ = false;
  std::int64_t first_ = 1, further_ = 1;
  std::unordered_map<const Value*, Shape> known_;
};

/// Computes every element of its result from the elements at the same place of its inputs, which broadcast.
bool elementwise(const Node& node);
/// The single reader of a value inside its own graph; null when it has several, or is a graph output.
Node* only_reader(const Value& value);

}  // namespace modelflow::passes
