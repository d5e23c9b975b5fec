// Gives the results of a program's lines their places: most are read by the next line and nowhere else.
#include "backends/cuda/program.h"

#include <algorithm>

#include "modelflow/error.h"

namespace modelflow::cuda {
namespace {

[[noreturn]] void refuse(const char* why) {
  throw Error(ErrorKind::unsupported, std::string("the program has ") + why);
}

/// The last line that reads each one's result, other than from the line before.
std::vector<std::size_t> last_readers(const std::vector<ops::Instruction>& lines) {
  std::vector<std::size_t> last(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (const ops::Instruction::Source& from : lines[i].from)
      if (!from.input && from.index + 1 != i) last[from.index] = i;
  return last;
}

}  // namespace

Program device_program(const std::vector<ops::Instruction>& lines, std::size_t first) {
  if (lines.size() > Program::kLines) refuse("too many lines");
  Program program;
  program.lines = static_cast<std::int32_t>(lines.size());
  program.first = static_cast<std::uint8_t>(first);
  const std::vector<std::size_t> last = last_readers(lines);
  std::size_t held[Program::kKept];  // until this line
  std::fill(std::begin(held), std::end(held), 0);
  std::vector<std::uint8_t> place(lines.size(), Program::kBefore);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto source = [&](const ops::Instruction::Source& from) -> std::uint8_t {
      if (from.input) return static_cast<std::uint8_t>(from.index);
      return from.index + 1 == i ? Program::kBefore : place[from.index];
    };
    Program::Line& line = program.line[i];
    line.op = pointwise_op_named(lines[i].op);
    line.a = source(lines[i].from[0]);
    line.b = line.op == PointwiseOp::activation ? static_cast<std::uint8_t>(activation_named(lines[i].op))
                                                : source(lines[i].from.back());
    line.keep = Program::kBefore;
    if (last[i] == 0) continue;
    auto* const free = std::find_if(std::begin(held), std::end(held), [&](std::size_t until) { return until <= i; });
    if (free == std::end(held)) refuse("too many results that wait for a later line");
    *free = last[i];
    const auto slot = static_cast<std::int32_t>(free - std::begin(held));
    program.kept = std::max(program.kept, slot + 1);
    line.keep = place[i] = static_cast<std::uint8_t>(Program::kFirstKept + slot);
  }
  return program;
}

}  // namespace modelflow::cuda
