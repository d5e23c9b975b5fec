// Reads the program of Reduce and cuts it at the reduction.
#include "backends/ops/reduce_attrs.h"

#include <algorithm>
#include <numeric>

#include "backends/call_attrs.h"

namespace modelflow::ops {
namespace {

/// The lines from which `result` is computed, renumbered. What stands at `cut` counts as input `inputs`.
std::vector<Instruction> needed(const std::vector<Instruction>& program, std::size_t result, std::size_t cut,
                                std::size_t inputs) {
  std::vector<bool> wanted(program.size());
  wanted[result] = true;
  for (std::size_t i = result + 1; i-- > 0;) {
    if (!wanted[i] || i == cut) continue;
    for (const Instruction::Source& from : program[i].from)
      if (!from.input) wanted[from.index] = true;
  }
  std::vector<std::size_t> place(program.size());
  std::vector<Instruction> lines;
  for (std::size_t i = 0; i <= result; ++i) {
    if (!wanted[i] || i == cut) continue;
    place[i] = lines.size();
    lines.push_back(program[i]);
    for (Instruction::Source& from : lines.back().from) {
      if (from.input) continue;
      from = from.index == cut ? Instruction::Source{true, inputs} : Instruction::Source{false, place[from.index]};
    }
  }
  return lines;
}

std::vector<bool> reads(const std::vector<Instruction>& lines, std::size_t inputs) {
  std::vector<bool> read(inputs + 1);
  for (const Instruction& line : lines)
    for (const Instruction::Source& from : line.from)
      if (from.input) read[from.index] = true;
  read.resize(inputs);
  return read;
}

}  // namespace

ReduceAttrs::ReduceAttrs(const CallAttrs& attrs, std::size_t inputs)
    : program(parse_program(attrs.text("program"), inputs)), keepdims(attrs.flag("keepdims")) {
  const auto refuse = [](const char* why) { throw Error(ErrorKind::invalid_input, std::string("Reduce: ") + why); };
  const auto reduces = [](const Instruction& line) { return is_reduction(line.op); };
  if (std::ranges::count_if(program, reduces) != 1) refuse("the program has not one line that reduces");
  line = static_cast<std::size_t>(std::ranges::find_if(program, reduces) - program.begin());
  const std::int64_t axis = attrs.integer("axis"), count = attrs.integer("axes");
  constexpr std::int64_t kMostAxes = 1 << 10;  // the list of them is written into the body
  if (axis >= 0 || axis < -kMostAxes || count < 1 || count > -axis) refuse("axis and axes contradict each other");
  from_end = static_cast<std::size_t>(-axis);
  axes = static_cast<std::size_t>(count);
}

Ints ReduceAttrs::axis_list() const {
  Ints list(axes);
  std::iota(list.begin(), list.end(), -static_cast<std::int64_t>(from_end));
  return list;
}

std::vector<Instruction> ReduceAttrs::before() const {
  if (source().input) return {};
  return needed(program, source().index, program.size(), 0);
}

std::size_t ReduceAttrs::turn(const std::vector<bool>& numbers) const {
  std::vector<bool> narrow(program.size());
  std::size_t last = line;
  narrow[line] = true;
  for (std::size_t i = line + 1; i < program.size(); ++i) {
    narrow[i] = std::ranges::all_of(program[i].from, [&](const Instruction::Source& from) {
      return from.input ? numbers[from.index] : narrow[from.index];
    });
    if (narrow[i]) last = i;
  }
  for (std::size_t i = line + 1; i < program.size(); ++i)
    for (const Instruction::Source& from : program[i].from)
      if (!narrow[i] && !from.input && narrow[from.index] && from.index != last) return line;
  return last;
}

std::vector<Instruction> ReduceAttrs::between(std::size_t inputs, std::size_t turn) const {
  return needed(program, turn, line, inputs);
}

std::vector<Instruction> ReduceAttrs::behind(std::size_t inputs, std::size_t turn) const {
  return needed(program, program.size() - 1, turn, inputs);
}

std::vector<bool> ReduceAttrs::reads_before(std::size_t inputs) const {
  std::vector<bool> read = reads(before(), inputs);
  if (source().input) read[source().index] = true;
  return read;
}

std::vector<bool> ReduceAttrs::reads_behind(std::size_t inputs) const { return reads(behind(inputs, line), inputs); }

}  // namespace modelflow::ops
