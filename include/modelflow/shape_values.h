// What is known about the elements of small integer tensors that carry shapes.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow {

using DimList = std::vector<Dim>;

/// What is known about the elements of small integer tensors (rank 0 or 1) that carry shapes: the results of Shape,
/// Gather, Concat and arithmetic on them, as Dims, so that "batch" and "12*seq" survive.
///
///     ShapeValues values(model.ir_version);
///     values.of(reshape.input(1));       // [batch, 12, seq, 64], or null
///
/// Remembers what it was asked: while it is in use, no value may go.
class ShapeValues {
 public:
  explicit ShapeValues(std::int64_t ir_version) : ir_version_(ir_version) {}
  /// The elements (some may be unknown); null when not even their number is known.
  const DimList* of(const Value* value);
  /// The bytes behind a value that cannot change: an initializer or the output of a Constant node; else null.
  const Tensor* constant(const Value* value);
  /// All elements as numbers; nothing when any is unknown.
  std::optional<std::vector<std::int64_t>> numbers(const Value* value);

 private:
  std::optional<DimList> compute(const Value& value);
  std::optional<DimList> evaluate(const Node& node, std::size_t output);

  std::int64_t ir_version_;
  int depth_ = 0;
  std::unordered_map<const Value*, std::optional<DimList>> known_;
  std::unordered_map<const Node*, Tensor> made_;  // of Constant nodes that hold plain numbers
};

}  // namespace modelflow
