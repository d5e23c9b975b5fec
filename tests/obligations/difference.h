// How far two results are apart, element by element, and whether their kinds (NaN, inf) agree.
#pragma once

#include <string>

#include "modelflow/tensor.h"

namespace modelflow::obligations {

struct Distance {
  double largest = 0;       ///< of the differences of finite numbers
  double scale = 0;         ///< the largest finite number of the reference
  bool finite = true;       ///< the reference, throughout
  std::string other_kind;   ///< "inf where the original has NaN": where a number is not finite
  std::string other_shape;  ///< where types or shapes differ: nothing else is told then
};

Distance distance(const Tensor& reference, const Tensor& result);

}  // namespace modelflow::obligations
