// The elementwise ops that programs of Pointwise and Reduce are made of, beside the activations, on every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace modelflow {

/// Those of two operands come first. `activation` is one without parameters (backends/activation.h).
enum class PointwiseOp : std::uint8_t {
  add,
  sub,
  mul,
  div,
  max,
  min,
  at_least,
  at_most,
  neg,
  abs,
  sqrt,
  reciprocal,
  exp,
  log,
  sin,
  cos,
  activation
};

constexpr bool takes_two(PointwiseOp op) { return op <= PointwiseOp::at_most; }

/// As programs write it: "Add", "AtLeast". `activation` for every other name, which need not be one.
PointwiseOp pointwise_op_named(std::string_view name);

}  // namespace modelflow
