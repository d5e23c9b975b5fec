// What a chain of views does to the axes of a tensor.
#pragma once

#include <optional>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow::passes {

/// What a chain of Reshape, Transpose, Squeeze, Unsqueeze and Flatten does to a tensor, with the axes of the input
/// split as finely as the chain splits or joins them ("atoms").
///
///     View view(x.shape());
///     view.transpose({0, 2, 1, 3}) && view.reshape(shape);    // false: it cannot be told
class View {
 public:
  explicit View(const Shape& input);
  bool transpose(const Ints& perm);
  /// To a shape with the same elements; unknown and symbolic dims must reappear as they are.
  bool reshape(const Shape& shape);

  /// The atoms in the order of the input, joined as far as they stay together: the shape to give the input, how to
  /// transpose it then. Empty perm: no transpose is needed.
  struct Plan {
    std::vector<Dim> blocks;
    Ints perm;
  };
  /// `join`: also across axes of the input.
  Plan plan(bool join) const;

 private:
  std::vector<std::size_t> origin_;                // input axis of each atom
  std::vector<Dim> extents_;                       // of each atom
  std::vector<std::size_t> source_;                // atoms in the order of the input
  std::vector<std::vector<std::size_t>> axes_;     // atoms of each axis of the result
  bool split(std::size_t atom, const Dim& first);  // atom -> (first, rest)
};

}  // namespace modelflow::passes
