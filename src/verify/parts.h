// Two models compared part by part, where their results alone cannot tell rounding from a fault.
#pragma once

#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/runtime.h"
#include "src/verify/reference.h"

namespace modelflow {

struct Parts {
  bool agree = false;      ///< every part computes the same from the same values
  std::string first = {};  ///< else the first node of the original whose result the other model computes otherwise
};

/// Cuts both models at the values whose names they share, and runs each part of the original on what the other model
/// has at its borders: a rounding that the rest enlarges, or that decides between two entries of a TopK, has no effect
/// there, while a part that computes something else shows, be it that the rest hides it again. A part may also be off
/// by what a last digit of its inputs and constants changes, and one without decisions by some such digits. Without
/// graph optimisation; `session` says threads and plugin for the other model. Throws Error(limit) where all values
/// together are larger than 2 GiB in float32.
Parts compare_parts(const Sessions& sessions, const Model& original, const Model& other, const Feeds& feeds,
                    const Reference& reference, const SessionOptions& session);

/// Whether any node decides by values (TopK, Round, Less, what holds graphs): rounding may then have any effect at all.
bool decides(const Graph& graph);

/// Whether some last digits of its inputs and constants move this output of the original as far from what the reference
/// has for that feed as `result` is, element by element.
bool is_rounding(const Sessions& sessions, const Model& original, const Reference& reference, std::size_t feed,
                 std::size_t output, const Tensor& result);

/// Whether such digits move any number of this output by `far` or more.
bool digits_move(const Sessions& sessions, const Model& original, const Reference& reference, std::size_t feed,
                 std::size_t output, double far);

}  // namespace modelflow
