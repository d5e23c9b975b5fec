// The fused op PointwiseScan: a program of elementwise ops that is run for every step of sequences, with states that it
// hands on from one step to the next: the recurrences of RWKV (arXiv 2305.13048), SRU, QRNN and minimal GRUs.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/ops/fits.h"
#include "backends/ops/pointwise_scan_attrs.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

/// Whether each line reads a sequence, over other lines of its step or itself: then it has all elements of a step.
std::vector<bool> whole_lines(const PointwiseScanAttrs& scan) {
  std::vector<bool> whole;
  for (const Instruction& line : scan.program)
    whole.push_back(std::ranges::any_of(line.from, [&](const Instruction::Source& from) {
      return from.input ? from.index < scan.sequences : whole[from.index];
    }));
  return whole;
}

}  // namespace

PointwiseScanAttrs::PointwiseScanAttrs(const Call& call)
    : count(call.inputs.size()),
      axis(CallAttrs(call).integer("axis")),
      first(CallAttrs(call).integer("first")),
      steps(CallAttrs(call).integer("steps")),
      keep_state(CallAttrs(call).flag("keep_state")) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorKind::invalid_input, "PointwiseScan: " + why); };
  const CallAttrs attrs(call);
  const Ints lines = attrs.ints("next");
  const std::int64_t of_y = attrs.integer("result"), of_sequences = attrs.integer("sequences");
  Ints outside = lines;
  outside.push_back(of_y);
  program = parse_program(attrs.text("program"), count, outside);
  if (std::ranges::any_of(program, [](const Instruction& line) { return is_reduction(line.op); }))
    refuse("a step does not reduce");
  if (lines.empty() || of_sequences < 1 || of_sequences + std::ssize(lines) > std::ssize(call.inputs))
    refuse("sequences and states are not that many inputs");
  constexpr std::int64_t kMost = 1 << 16;  // lines of the body
  if (steps < 1 || steps > kMost / std::ssize(program) || axis < 0 || first < 0 || first > kMost)
    refuse("steps, axis or first is out of range");
  sequences = static_cast<std::size_t>(of_sequences);
  result = static_cast<std::size_t>(of_y);
  next.assign(lines.begin(), lines.end());
  const std::vector<bool> whole = whole_lines(*this);
  for (const std::size_t line : written())
    if (!whole[line]) refuse("a result reads no sequence");
}

std::vector<std::size_t> PointwiseScanAttrs::written() const {
  std::vector<std::size_t> lines = {result};
  for (const std::size_t line : next)
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  return lines;
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) names.push_back("x" + std::to_string(i));
  return names;
}

/// A first state that is no constant may be the last one of another call.
std::vector<std::string> roles(const Call& call) {
  std::vector<std::string> names = inputs(call);
  const PointwiseScanAttrs scan(call);
  for (std::size_t i = scan.first_state(); i < names.size(); ++i)
    if (!call.in(i).constant) names[i] = "initial_h";
  return names;
}

/// What the values of step `step` are called in the body: operands of the program and its lines.
std::string name_of(const PointwiseScanAttrs& scan, const Instruction::Source& source, std::int64_t step) {
  if (!source.input) return fmt::format("t{}_{}", source.index, step);
  if (source.index < scan.sequences) return fmt::format("x{}_{}", source.index, step);
  if (!scan.is_state(source.index) || step == 0) return "x" + std::to_string(source.index);
  return fmt::format("t{}_{}", scan.next[source.index - scan.first_state()], step - 1);
}

/// One step behind the other, as exporters write loops of a known length.
std::string body(const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "PointwiseScan needs opset 13, the model has " + std::to_string(opset));
  const PointwiseScanAttrs scan(call);
  std::string text = fmt::format("{{\ntime = Constant <value = int64[1] {{{}}}> ()\n", scan.axis), rows;
  for (std::int64_t i = 0; i < scan.steps; ++i) {
    text += fmt::format("at{} = Constant <value_int: int = {}> ()\n", i, scan.first + i);
    for (std::size_t x = 0; x < scan.sequences; ++x)
      text += fmt::format("x{0}_{1} = Gather <axis = {2}> (x{0}, at{1})\n", x, i, scan.axis);
    text += program_text(scan.program, opset, {},
                         [&](const Instruction::Source& source) { return name_of(scan, source, i); });
    text += fmt::format("row{0} = Unsqueeze (t{1}_{0}, time)\n", i, scan.result);
    rows += fmt::format("{}row{}", i ? ", " : "", i);
  }
  text += fmt::format("y = Concat <axis = {}> ({})\n", scan.axis, rows);
  for (std::size_t i = 0; scan.keep_state && i < scan.next.size(); ++i)
    text += fmt::format("y{} = Identity (t{}_{})\n", i + 1, scan.next[i], scan.steps - 1);
  return text + "}";
}

/// Dims of a step, as far as the sequences tell them; nothing where they tell none.
std::optional<std::vector<Dim>> step_dims(const Call& call, const PointwiseScanAttrs& scan, Verdict& why) {
  std::optional<std::vector<Dim>> dims;
  for (std::size_t i = 0; i < scan.sequences; ++i) {
    const Shape& shape = call.in(i).shape;
    if (!shape.has_rank()) continue;
    if (static_cast<std::size_t>(scan.axis) >= shape.rank()) {
      why = no("has no such axis", call.in(i).name);
      return {};
    }
    if (!dims) dims = shape.dims();
    if (why = fits(call.in(i), *dims); !why) return {};
    for (std::size_t a = 0; a < shape.rank(); ++a)
      if (!(*dims)[a].known()) (*dims)[a] = shape[a];
  }
  if (!dims) return {};
  const auto time = dims->begin() + scan.axis;
  if (time->known() && time->value() < scan.first + scan.steps) {
    why = no("has fewer rows than steps", call.in(0).name);
    return {};
  }
  dims->erase(time);
  return dims;
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<PointwiseScanAttrs> scan = read_attrs<PointwiseScanAttrs>(call, why);
  if (!scan) return why;
  call.outputs.resize(scan->keep_state ? 1 + scan->next.size() : 1);
  for (Operand& output : call.outputs) {
    output.dtype = float_type(call);
    output.shape = Shape();
  }
  const std::optional<std::vector<Dim>> step = step_dims(call, *scan, why);
  if (!step) return why;
  for (std::size_t i = scan->sequences; i < call.inputs.size(); ++i) {
    const Shape& shape = call.in(i).shape;
    if (!shape.has_rank()) continue;
    if (shape.rank() > step->size()) return no("has more axes than a step", call.in(i).name);
    for (std::size_t a = 0; a < shape.rank(); ++a) {
      const Dim &dim = shape[a], &wanted = (*step)[step->size() - shape.rank() + a];
      if (dim.known() && dim.value() != 1 && wanted.known() && !(dim == wanted))
        return no("is not repeated along a step", call.in(i).name);
    }
  }
  for (Operand& output : call.outputs) output.shape = Shape(*step);
  std::vector<Dim> rows = *step;
  rows.insert(rows.begin() + scan->axis, Dim(scan->steps));
  call.outputs[0].shape = Shape(std::move(rows));
  return yes();
}

struct Sample {
  const char* program;
  std::int64_t result;
  Ints next;
  std::vector<Dims> sequences, others;  ///< the last of others are states
  std::int64_t axis = 1, first = 0, steps = 1;
  bool keep_state = false, from_zero = false;  ///< from_zero: states begin as a constant
};

/// The numerator and the denominator of RWKV's average, both over the exponential of the largest key.
constexpr const char* kRwkv =
    "Add x0 x2; Max x6 t0; Sub x6 t1; Exp t2; Sub t0 t1; Exp t4; Mul t3 x4; Mul t5 x1; Add t6 t7; Mul t3 x5; "
    "Add t9 t5; Div t8 t10; Add x6 x3; Max t12 x0; Sub t12 t13; Exp t14; Sub x0 t13; Exp t16; Mul t15 x4; "
    "Mul t17 x1; Add t18 t19; Mul t15 x5; Add t21 t17";

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    for (const Sample& s : std::initializer_list<Sample>{
             {kRwkv, 11, {20, 22, 13}, {{1, 32, 768}, {1, 32, 768}}, {{768}, {768}, {}, {}, {}}, 1, 0, 32, false, true},
             {"Mul x0 x2; Add t0 x1", 1, {1}, {{5, 2, 33}, {5, 2, 33}}, {{2, 33}}, 0, 1, 4, true},
             {"Sigmoid x0; Sub x2 t0; Mul t0 x3; Mul t1 x1; Add t2 t3; Tanh t4; Mul t5 t0",
              6,
              {4},
              {{3, 7, 2, 65}, {3, 7, 2, 65}},
              {{}, {2, 1}},
              1,
              0,
              6,
              true},
             {"Mul x0 x3; Add t0 x1; Mul t1 x2",
              2,
              {1},
              {{2, 9, 1024}, {2, 9, 1024}},
              {{1024}, {2, 1024}},
              1,
              0,
              9,
              true},
             {"Add x0 x1; Mul t0 x2; Max t1 x3", 1, {2, 1}, {{600, 3}}, {{600}, {600}, {}}, 1, 0, 3, true}}) {
      Call call{"PointwiseScan", {}, {}, {{"y", DType::f32, {}}}};
      call.attrs.set("program", std::string(s.program))
          .set("sequences", std::ssize(s.sequences))
          .set("result", s.result)
          .set("next", s.next)
          .set("axis", s.axis)
          .set("first", s.first)
          .set("steps", s.steps)
          .set("keep_state", s.keep_state ? 1 : 0);
      for (const auto& list : {s.sequences, s.others})
        for (const Dims& dims : list)
          call.inputs.push_back(all.operand(("x" + std::to_string(call.inputs.size())).c_str(), dims));
      for (std::size_t i = call.inputs.size() - s.next.size(); s.from_zero && i < call.inputs.size(); ++i)
        call.inputs[i] =
            constant_operand(("x" + std::to_string(i)).c_str(), all.weights.emplace_back(Tensor::scalar(0.0f)));
      if (const Verdict fit = infer(call); !fit) throw Error(ErrorKind::internal, "PointwiseScan: " + fit.reason);
      for (std::size_t i = 1; i < call.outputs.size(); ++i) call.outputs[i].name = "y" + std::to_string(i);
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp pointwise_scan_op = {
    .kind = "PointwiseScan",
    .doc = "A program of elementwise ops for every step of sequences, with states that pass from step to step (RWKV).",
    .names = 1,
    .min_inputs = 2,
    .max_inputs = 8,
    .max_outputs = 8,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = [](const Call&, int) { return std::vector<std::string>(); },
    .infer = infer,
    .samples = samples,
    .defaults = {{"program", std::string()},
                 {"sequences", std::int64_t{1}},
                 {"result", std::int64_t{0}},
                 {"next", Ints{}},
                 {"axis", std::int64_t{1}},
                 {"first", std::int64_t{0}},
                 {"steps", std::int64_t{1}},
                 {"keep_state", std::int64_t{0}}},
    .family = Family::recurrence,
    .roles = roles,
};

}  // namespace modelflow::ops
