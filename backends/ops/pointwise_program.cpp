// Reads programs of elementwise ops and writes them as ONNX text.
#include "backends/ops/pointwise_program.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>

#include "backends/ops/activation_body.h"
#include "backends/pointwise_op.h"
#include "modelflow/error.h"

namespace modelflow::ops {
namespace {

/// Of one operand, without parameters.
constexpr std::string_view kActivations[] = {"Relu", "Sigmoid", "Tanh", "SiLU", "Mish", "Gelu", "GeluTanh"};

constexpr std::string_view kReduce[] = {"ReduceSum", "ReduceMean", "ReduceMax",
                                        "ReduceMin", "ReduceL2",   "ReduceSumSquare"};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ErrorKind::invalid_input, "Pointwise: program '" + std::string(text) + "': " + why);
}

Instruction::Source source_of(const std::string& word, std::string_view text) {
  Instruction::Source source{.input = word[0] == 'x'};
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + 1, end, source.index);
  if ((word[0] != 'x' && word[0] != 't') || error != std::errc() || stop != end) refuse(text, "no operand: " + word);
  return source;
}

Instruction line_of(const std::string& line, std::string_view text) {
  std::istringstream words(line);
  Instruction made;
  words >> made.op;
  for (std::string word; words >> word;) made.from.push_back(source_of(word, text));
  const std::size_t arity = is_reduction(made.op) ? 1 : pointwise_arity(made.op);
  if (arity == 0) refuse(text, "no op: '" + made.op + "'");
  if (arity != made.from.size()) refuse(text, made.op + " has another number of operands");
  return made;
}

}  // namespace

std::size_t pointwise_arity(std::string_view op) {
  const PointwiseOp found = pointwise_op_named(op);
  if (found != PointwiseOp::activation) return takes_two(found) ? 2 : 1;
  return std::ranges::find(kActivations, op) != std::end(kActivations) ? 1 : 0;
}

bool is_reduction(std::string_view op) { return std::ranges::find(kReduce, op) != std::end(kReduce); }

std::vector<Instruction> parse_program(std::string_view text, std::size_t inputs, const Ints& results) {
  std::vector<Instruction> program;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line, ';');) program.push_back(line_of(line, text));
  if (program.empty()) refuse(text, "empty");
  std::vector<bool> read(inputs), used(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    for (const Instruction::Source& from : program[i].from) {
      if (from.index >= (from.input ? inputs : i)) refuse(text, "reads what is not there");
      (from.input ? read : used)[from.index] = true;
    }
  }
  for (const std::int64_t line : results) {
    if (line < 0 || line >= std::ssize(program)) refuse(text, "a result is no line");
    used[static_cast<std::size_t>(line)] = true;
  }
  if (results.empty()) used.back() = true;
  for (const auto& list : {read, used}) {
    if (std::find(list.begin(), list.end(), false) != list.end()) refuse(text, "something is never read");
  }
  return program;
}

namespace {

/// Axes are an attribute before opset 18, of ReduceSum before 13.
std::string reduce_text(const std::string& y, const std::string& op, const std::string& x, const Ints& axes,
                        int opset) {
  std::string list;
  for (const std::int64_t axis : axes) list += (list.empty() ? "" : ", ") + std::to_string(axis);
  if (opset < (op == "ReduceSum" ? 13 : 18))
    return y + " = " + op + " <axes = [" + list + "], keepdims: int = @keepdims> (" + x + ")\n";
  return y + "_axes = Constant <value = int64[" + std::to_string(axes.size()) + "] {" + list + "}> ()\n" + y + " = " +
         op + " <keepdims: int = @keepdims> (" + x + ", " + y + "_axes)\n";
}

/// Clip with one bound, a number; a bound that is absent is the lowest or highest number, which infinities are cut to.
std::string clip_text(const std::string& y, const std::string& op, const std::string& x, const std::string& bound) {
  if (op == "AtLeast") return y + " = Clip (" + x + ", " + bound + ")\n";
  return constant_text(y + "_lowest", std::numeric_limits<float>::lowest()) + y + " = Clip (" + x + ", " + y +
         "_lowest, " + bound + ")\n";
}

}  // namespace

std::string program_text(const std::vector<Instruction>& program, int opset, const Ints& axes,
                         const std::function<std::string(const Instruction::Source&)>& name) {
  const std::vector<std::string>& activations = activation_names();
  std::string text;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Instruction& line = program[i];
    const std::string y = name({false, i});
    std::vector<std::string> from;
    for (const Instruction::Source& source : line.from) from.push_back(name(source));
    if (is_reduction(line.op)) {
      text += reduce_text(y, line.op, from[0], axes, opset);
    } else if (line.op == "AtLeast" || line.op == "AtMost") {
      text += clip_text(y, line.op, from[0], from[1]);
    } else if (std::ranges::find(activations, line.op) != activations.end()) {
      text += activation_body(Call{"Activation", {{"activation", line.op}}, {}, {}}, opset, from[0], y);
    } else {
      text += y + " = " + line.op + " (" + from[0] + (from.size() == 2 ? ", " + from[1] : "") + ")\n";
    }
  }
  return text;
}

std::string program_body(const std::vector<Instruction>& program, int opset, const Ints& axes) {
  return "{\n" +
         program_text(program, opset, axes,
                      [&](const Instruction::Source& source) -> std::string {
                        if (!source.input && source.index + 1 == program.size()) return "y";
                        return (source.input ? "x" : "t") + std::to_string(source.index);
                      }) +
         "}";
}

namespace {

using Extents = std::vector<double>;  // from the last one on

double elements(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), 1.0, std::multiplies<>());
}

Extents extents_of(const Operand& operand) {
  Extents extents;
  if (!operand.shape.has_rank()) return extents;
  for (std::size_t i = operand.shape.rank(); i-- > 0;)
    extents.push_back(static_cast<double>(operand.shape[i].number().value_or(1)));
  return extents;
}

void broadcast(Extents& to, const Extents& from) {
  to.resize(std::max(to.size(), from.size()), 1.0);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = to[i] == 1 ? from[i] : to[i];
}

void reduce(Extents& extents, ReducedAxes reduced) {
  if (reduced.from_end > extents.size()) return;  // of unknown rank
  const auto end = extents.begin() + static_cast<std::ptrdiff_t>(reduced.from_end);
  const auto first = end - static_cast<std::ptrdiff_t>(reduced.count);
  if (reduced.keepdims) {
    std::fill(first, end, 1.0);
  } else {
    extents.erase(first, end);
  }
}

}  // namespace

double program_bytes(const Call& call, const std::vector<Instruction>& program, ReducedAxes reduced) {
  std::vector<Extents> results;
  double moved = 0;
  for (const Instruction& line : program) {
    Extents result;
    for (const Instruction::Source& from : line.from) {
      const Extents read = from.input ? extents_of(call.in(from.index)) : results[from.index];
      moved += elements(read);
      broadcast(result, read);
    }
    if (is_reduction(line.op)) reduce(result, reduced);
    moved += elements(result);
    results.push_back(std::move(result));
  }
  for (const Operand& input : call.inputs) moved -= elements(extents_of(input));
  return (moved - elements(results.back())) * bits(float_type(call)) / 8;
}

}  // namespace modelflow::ops
