// The attributes and the body of Rotary.
#pragma once

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The attributes of modelflow.Rotary, read once and checked. Throws Error(invalid_input).
struct RotaryAttrs {
  explicit RotaryAttrs(const CallAttrs& attrs);

  std::int64_t heads = 1;     ///< of x in layout BSH
  std::int64_t head_dim = 0;  ///< of x in layout BSH where the body need not compute it; else 0
  bool flat = false;         ///< x is [batch, sequence, heads * size] (BSH), else [batch, heads, sequence, size] (BNSH)
  bool interleaved = false;  ///< pairs are neighbours, else element i of the first half goes with i of the second
  bool half_width = false;   ///< cos and sin have one number per pair, else one per element
  bool partial = false;      ///< elements behind those that cos and sin cover stay as they are

  std::size_t inputs() const { return 3; }
};

/// The function body in standard ops of this opset (13 or later).
std::string rotary_body(const Call& call, int opset);

}  // namespace modelflow::ops
