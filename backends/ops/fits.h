// Whether operands have the extents that their op wants.
#pragma once

#include <string>
#include <vector>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// Yes as far as both sides are known.
inline Verdict fits(const Operand& operand, const std::vector<Dim>& want) {
  if (!operand.shape.has_rank()) return yes();
  if (operand.shape.rank() != want.size()) return no("is not of rank " + std::to_string(want.size()), operand.name);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Dim& dim = operand.shape[i];
    if (dim.known() && want[i].known() && !(dim == want[i]))
      return no("is " + operand.shape.str() + ", not " + Shape(want).str(), operand.name);
  }
  return yes();
}

}  // namespace modelflow::ops
