// The attributes of SelectiveScan, read.
#pragma once

#include "backends/call_attrs.h"

namespace modelflow::ops {

struct SelectiveScanAttrs {
  std::int64_t steps = 1;   ///< as many of the rows of every sequence are taken
  bool scales_b = false;    ///< b times delta, then times u; else u holds whatever factors there are
  bool has_state = false;   ///< initial_h is there; else the state begins as 0
  bool keep_state = false;  ///< the last state is a result

  /// Throws Error(invalid_input) where they are not what the op declares.
  explicit SelectiveScanAttrs(const Call& call);

  std::size_t inputs() const { return has_state ? 6 : 5; }
};

}  // namespace modelflow::ops
