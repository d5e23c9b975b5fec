// The two factors of what a selective state space model keeps and adds in every step, told apart by the axes they have.
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

/// Two tensors that broadcast: `row` without states, `other` without the axes that `absent` names.
struct ScanFactors {
  Value *row = nullptr, *other = nullptr;

  /// Reads a product of batch, time, channels and states, wherever these are; false where it is none of such factors,
  /// or one of them does not have every axis that is left to it.
  bool read(const Value& product, const ScanAxes& axes, const std::vector<std::int64_t>& absent);
};

/// True where the value has all axes of the product but those `absent`, and no others.
bool has_axes(const Value& value, const Value& product, const std::vector<std::int64_t>& absent);

/// A factor on the axes `kept`, in this order. The others have one element.
Value& laid_out(Build& build, Value& factor, const std::vector<std::int64_t>& kept);

}  // namespace modelflow::passes
