// The attributes of Softmax.
#pragma once

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The attributes of modelflow.Softmax, read once and checked. Throws Error(invalid_input).
struct SoftmaxAttrs {
  explicit SoftmaxAttrs(const CallAttrs& attrs);

  bool log = false, has_mask = false;
  bool boolean_mask = false;  ///< the mask is boolean, and means one of two numbers
  float scale = 1;
  float mask_true = 0, mask_false = 0;                 ///< these, which are added
  bool true_replaces = false, false_replaces = false;  ///< or one of them stands in place of the score
  std::size_t from_end = 1;                            ///< the axis: 1 is the last one

  std::size_t inputs() const { return has_mask ? 2 : 1; }
  DType mask_type() const { return boolean_mask ? DType::boolean : DType::f32; }
};

}  // namespace modelflow::ops
