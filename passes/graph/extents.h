// Which extents are equal although nobody knows their number, and what they typically are.
#pragma once

#include <unordered_map>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// Shapes as type inference tells them, in which no extent is without a name: where not even a symbol is known, it gets
/// one, and two extents with the same symbol are equal although nobody knows their number.
///
///     Extents extents;
///     extents.of(*add.input(0)) == extents.of(*add.input(1));    // same shape, proven
///
/// Remembers what it named: tell it which values are about to go, so that a new one at the same address is new.
class Extents {
 public:
  /// Rank unknown only when nothing tells it.
  Shape of(const Value& value);
  void forget(const Value& value) { named_.erase(&value); }

 private:
  std::size_t names_ = 0;
  std::unordered_map<const Value*, Shape> named_;
};

/// Sizes for costs: what follows from typical numbers for whatever the inputs of the model leave open, those of
/// `context.typical` where it has them, else those of modelflow/typical.h.
class TypicalSizes {
 public:
  explicit TypicalSizes(const Context& context) : context_(context) {}
  Shape of(const Value& value);
  /// The call of a fused node with these sizes.
  Call call(const Node& node);
  /// The first takes the place of the second, which is about to go.
  void replace(const Value& value, const Value& replaced);
  /// Bytes of a tensor of that shape, float32 unless it is uint8; dims that no number is known for count as one.
  double bytes(const Value& value);

 private:
  void infer();

  const Context& context_;
  bool inferred_ = false;
  std::unordered_map<const Value*, Shape> shapes_;
};

/// Computes every element of its result from the elements at the same place of its inputs, which broadcast.
bool elementwise(const Node& node);
/// The single reader of a value inside its own graph; null when it has several, or is a graph output.
Node* only_reader(const Value& value);

}  // namespace modelflow::passes
