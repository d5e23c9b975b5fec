// The attributes of Reduce: its program, cut at the reduction.
#pragma once

#include "backends/call_attrs.h"
#include "backends/ops/pointwise_program.h"

namespace modelflow::ops {

/// The attributes of modelflow.Reduce, read once and checked. Throws Error(invalid_input).
struct ReduceAttrs {
  ReduceAttrs(const CallAttrs& attrs, std::size_t inputs);

  std::vector<Instruction> program;  ///< as of modelflow.Pointwise, with one line that reduces
  std::size_t line = 0;              ///< that one
  std::size_t from_end = 1;          ///< the first of the reduced axes: 1 is the last one
  std::size_t axes = 1;              ///< how many, side by side
  bool keepdims = true;

  const std::string& op() const { return program[line].op; }
  Ints axis_list() const;
  /// Lines that the reduction needs, the last one being what is reduced; none where that is an input (`source`).
  std::vector<Instruction> before() const;
  Instruction::Source source() const { return program[line].from[0]; }
  /// The line that all others read the reduction through: the last one that needs nothing but it and `numbers`, inputs
  /// of one element.
  std::size_t turn(const std::vector<bool>& numbers) const;
  /// From the reduction, which is input `inputs`, to that line; none where it is the reduction itself.
  std::vector<Instruction> between(std::size_t inputs, std::size_t turn) const;
  /// Lines behind that one, which is input `inputs`, and what they need of those before the reduction.
  std::vector<Instruction> behind(std::size_t inputs, std::size_t turn) const;
  /// Which inputs these lines read, or the reduction itself.
  std::vector<bool> reads_before(std::size_t inputs) const;
  std::vector<bool> reads_behind(std::size_t inputs) const;
};

}  // namespace modelflow::ops
