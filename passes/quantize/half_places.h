// Which nodes of a graph compute in floats of 16 bits, and which stay in float32.
#pragma once

#include <unordered_set>
#include <vector>

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"

namespace modelflow::passes {

/// A tensor of float32, a constant or not.
bool is_single(const Value* value);
/// No constant.
bool varies(const Value* value);
/// Takes a value of any type as it is: a Cast, or what looks at extents only.
bool takes_any(const Node& node);
/// Whether input `i` is float32 where the node computes in 16 bits as well.
bool stays_single(const Node& node, std::size_t i);
/// Makes new numbers of many: what comes out is no position any more.
bool multiplies(const Node& node);

/// The choice for the main graph of a model. In float32 stays what has no kernel for the smaller type, what the plan
/// keeps, whose numbers do not fit, what takes a state that another call left (its roundings would add up), what is
/// computed of whole numbers (positions, ranges, masks, as far as it is computed of nothing else) or leads to a sine of
/// them, and squares on the way to a sum; and whatever only moves or changes single elements where that saves Casts, in
/// 8 bits also what computes too little for its Casts.
class HalfPlaces {
 public:
  HalfPlaces(Graph& graph, Context& context, DType half);

  bool computes(const Node& node) const { return halves_.contains(&node); }
  /// Whether a constant may be an operand of this node in the smaller type.
  Verdict fits(const Tensor& constant, const Node& node) const;

 private:
  Verdict can(const Node& node) const;
  Verdict can_fused(const Node& node) const;
  bool holds(float number, bool as_bound) const;
  std::unordered_set<const Node*> computed_of_integers() const;
  std::unordered_set<const Node*> leading_to_sines() const;
  void keep_squares();
  void keep_roots();
  void save_casts();
  void save_islands();
  void save_output_casts();
  double gain(const Node& node, TypicalSizes& sizes) const;
  std::vector<const Node*> island(const Node& first) const;
  std::vector<const Node*> way_from_output(const Value& output) const;
  int casts(const Node& node, bool half) const;
  bool read_elsewhere(const Value& value, const Node& node, bool half) const;

  Graph& graph_;
  Context& context_;
  const DType half_;
  std::unordered_set<const Node*> halves_;
};

}  // namespace modelflow::passes
