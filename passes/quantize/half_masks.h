// Numbers that hide scores of a softmax, where float32 becomes a float of 16 bits.
#pragma once

#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "modelflow/modelflow.h"

namespace modelflow::passes {

/// Masks are computed or given in float32 and hide by the least number of it. A Cast makes an infinity of that, and
/// where all keys of a query are hidden the softmax then has nothing left: NaN in place of numbers.
class HalfMasks {
 public:
  HalfMasks(const Graph& graph, Context& context, DType half);

  /// What a reader in the smaller type has to read in place of `value`, in float32 still: that, bounded where it may
  /// hide scores. Infinity stays infinity.
  Value& bounded(Value& value, Node& reader, std::size_t input);

 private:
  void find_products(const Graph& graph);
  void find_readers(const Graph& graph);
  bool leads_to_scores(const Node& node) const;
  Value& bounded(Value& value, Node& reader);

  Context& context_;
  const DType half_;
  std::unordered_set<const Value*> products_;             ///< what is computed of products or sums
  std::unordered_set<const Node*> before_;                ///< elements and views on the way to scores
  std::set<std::pair<const Node*, std::size_t>> places_;  ///< that scores are hidden by
  std::map<const Value*, Value*> bounded_;
};

}  // namespace modelflow::passes
