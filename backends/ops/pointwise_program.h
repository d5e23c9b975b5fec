// Programs of elementwise ops as text: one instruction a line, and their ONNX bodies.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/attr.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

/// One line of the attribute `program` of modelflow.Pointwise: an op of pointwise_arity() and what it reads.
struct Instruction {
  struct Source {
    bool input = true;  ///< x0, x1, ...: an input of the node; else t0, t1, ...: the result of that line
    std::size_t index = 0;
  };
  std::string op;
  std::vector<Source> from;
};

/// How many operands an op of a program has (Add 2, Sqrt 1); 0 for what programs do not have.
std::size_t pointwise_arity(std::string_view op);

/// ReduceSum and its like, of which modelflow.Reduce has one line.
bool is_reduction(std::string_view op);

/// "Mul x0 x1; Add t0 x2; SiLU t1": each line's result is named after its place, the last one is y. Throws
/// Error(invalid_input) when the text is none, reads what does not exist or leaves a line or an input unread.
/// `results`: lines that are read outside; none: the last one.
std::vector<Instruction> parse_program(std::string_view text, std::size_t inputs, const Ints& results = {});
/// The function body. `axes`: of a reduction, whose keepdims is @keepdims.
std::string program_body(const std::vector<Instruction>& program, int opset, const Ints& axes = {});
/// The lines as ONNX text, with these names of their operands and results.
std::string program_text(const std::vector<Instruction>& program, int opset, const Ints& axes,
                         const std::function<std::string(const Instruction::Source&)>& name);

/// Axes that a reduction takes: side by side, the first of them counted from the end (1: the last one).
struct ReducedAxes {
  std::size_t from_end = 0, count = 0;
  bool keepdims = true;
};

/// Bytes that plain ops, one for each line, move beside reading every input once and writing the result. Unknown dims
/// count as 1.
double program_bytes(const Call& call, const std::vector<Instruction>& program, ReducedAxes reduced = {});

}  // namespace modelflow::ops
