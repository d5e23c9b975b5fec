#pragma once

#include "backends/ops/pointwise_program.h"

namespace modelflow::ops {

/// The attributes of modelflow.Reduce, read once and checked. Throws Error(invalid_input).
struct ReduceAttrs {
  ReduceAttrs(const Attrs& attrs, std::size_t inputs);

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
  /// Lines behind it, and what they need of those before; the reduction is input `inputs`.
  std::vector<Instruction> behind(std::size_t inputs) const;
  /// Which inputs these lines read, or the reduction itself.
  std::vector<bool> reads_before(std::size_t inputs) const;
  std::vector<bool> reads_behind(std::size_t inputs) const;
};

}  // namespace modelflow::ops
