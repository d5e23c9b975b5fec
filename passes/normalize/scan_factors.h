// The factors of what a selective state space model keeps and adds in every step, told apart by the axes they have.
#pragma once

#include <cstdint>
#include <vector>

#include "modelflow/pass.h"

namespace modelflow::passes {

/// A value that steps are taken from, one behind the other along an axis.
struct Steps {
  Value* all = nullptr;
  std::int64_t axis = 0;
  bool operator==(const Steps&) const = default;
};

/// Where a tensor over batch, time, channels and states has these, time at `time`: the others in this order.
struct ScanAxes {
  std::int64_t batch, time, channel, state;
  explicit ScanAxes(std::int64_t time);
};

/// The product of two tensors that broadcast: `rows` without states, `others` without what `absent` names.
struct ScanFactors {
  std::vector<Value*> rows, others;

  /// Reads `product` [batch, time, channels, states in this order]; false where it is none of such factors, or these do
  /// not have every axis that is left to them.
  bool read(Value& product, const ScanAxes& axes, const std::vector<std::int64_t>& absent);
};

/// The product of factors on the axes `kept`, in this order. The other axes have one element.
Value& joined_factors(Build& build, const std::vector<Value*>& factors, const std::vector<std::int64_t>& kept);

}  // namespace modelflow::passes
