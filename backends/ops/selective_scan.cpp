// The fused op SelectiveScan: the recurrence of selective state space models (Gu and Dao, "Mamba", algorithm 2).
#include <fmt/format.h>

#include <optional>

#include "backends/ops/fits.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/selective_scan_attrs.h"
#include "backends/ops/work.h"

namespace modelflow::ops {

SelectiveScanAttrs::SelectiveScanAttrs(const Call& call)
    : steps(CallAttrs(call).integer("steps")),
      scales_b(CallAttrs(call).flag("scales_b")),
      has_state(CallAttrs(call).flag("has_state")),
      keep_state(CallAttrs(call).flag("keep_state")) {
  constexpr std::int64_t kMost = 1 << 16;  // the body has ten lines for each
  if (steps < 1 || steps > kMost) throw Error(ErrorKind::invalid_input, "steps is " + std::to_string(steps));
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names = {"u", "delta", "a", "b", "c"};
  if (SelectiveScanAttrs(call).has_state) names.emplace_back("initial_h");
  return names;
}

/// The state behind a step and what it gives.
std::string step_text(std::int64_t step, const std::string& before, const std::string& h) {
  return fmt::format(
      "at{0} = Constant <value_int: int = {0}> ()\ndecay{0} = Gather <axis = 1> (decay, at{0})\n"
      "added{0} = Gather <axis = 1> (added, at{0})\nc{0} = Gather <axis = 1> (c, at{0})\n"
      "kept{0} = Mul (decay{0}, {1})\n{2} = Add (kept{0}, added{0})\n"
      "column{0} = Unsqueeze (c{0}, last)\npart{0} = MatMul ({2}, column{0})\n",
      step, before, h);
}

/// One step behind the other, as exporters write loops of a known length.
std::string body(const Call& call, int opset) {
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "SelectiveScan needs opset 13, the model has " + std::to_string(opset));
  const SelectiveScanAttrs scan(call);
  std::string text =
      "{\nlast = Constant <value = int64[1] {-1}> ()\ntwo = Constant <value = int64[1] {2}> ()\n"
      "delta_column = Unsqueeze (delta, last)\nexponent = Mul (delta_column, a)\ndecay = Exp (exponent)\n"
      "u_column = Unsqueeze (u, last)\nb_row = Unsqueeze (b, two)\n";
  text += scan.scales_b ? "b_scaled = Mul (delta_column, b_row)\nadded = Mul (b_scaled, u_column)\n"
                        : "added = Mul (u_column, b_row)\n";
  if (!scan.has_state) text += "initial_h = Constant <value_float: float = 0.0> ()\n";
  std::string before = "initial_h", all;
  for (std::int64_t i = 0; i < scan.steps; ++i) {
    const std::string h = scan.keep_state && i + 1 == scan.steps ? "y1" : "h" + std::to_string(i);
    text += step_text(i, before, h);
    all += (i ? ", part" : "part") + std::to_string(i);
    before = h;
  }
  return text + "parts = Concat <axis = 2> (" + all + ")\ny = Transpose <perm = [0, 2, 1]> (parts)\n}";
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<SelectiveScanAttrs> scan = read_attrs<SelectiveScanAttrs>(call, why);
  if (!scan) return why;
  const Shape &u = call.in(0).shape, &a = call.in(2).shape;
  std::vector<Dim> dims(3), of_a(2);
  if (u.has_rank() && u.rank() == 3) dims = u.dims();
  if (a.has_rank() && a.rank() == 2) of_a = a.dims();
  const Dim batch = dims[0], length = dims[1], channels = dims[2].known() ? dims[2] : of_a[0], states = of_a[1];
  if (length.known() && length.value() < scan->steps) return no("has fewer rows than steps", call.in(0).name);
  for (const std::size_t i : {0, 1})
    if (Verdict v = fits(call.in(i), {batch, length, channels}); !v) return v;
  if (Verdict v = fits(call.in(2), {channels, states}); !v) return v;
  for (const std::size_t i : {3, 4})
    if (Verdict v = fits(call.in(i), {batch, length, states}); !v) return v;
  if (scan->has_state)
    if (Verdict v = fits(call.in(5), {batch, channels, states}); !v) return v;
  call.outputs.resize(scan->keep_state ? 2 : 1);
  for (Operand& output : call.outputs) output.dtype = float_type(call);
  call.outputs[0].shape = Shape({batch, Dim(scan->steps), channels});
  if (scan->keep_state) call.outputs[1].shape = Shape({batch, channels, states});
  return yes();
}

struct Sample {
  std::int64_t batch, length, steps, channels, states;
  bool scales_b = false, has_state = false, keep_state = false;
};

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    for (const Sample& s : std::initializer_list<Sample>{{1, 32, 32, 1536, 16, true},
                                                         {2, 5, 4, 37, 3, false, true, true},
                                                         {3, 1, 1, 8, 16, true, true, true},
                                                         {1, 7, 7, 100, 1, false, false, true},
                                                         {2, 3, 3, 5, 64, true, true, false},
                                                         {3, 9, 9, 130, 20, true, false, true}}) {
      Call call{"SelectiveScan", {}, {}, {}};
      call.attrs.set("steps", s.steps)
          .set("scales_b", s.scales_b ? 1 : 0)
          .set("has_state", s.has_state ? 1 : 0)
          .set("keep_state", s.keep_state ? 1 : 0);
      const Dims row = {s.batch, s.length, s.channels}, state = {s.batch, s.length, s.states};
      call.inputs = {all.operand("u", row), all.operand("delta", row), all.operand("a", {s.channels, s.states}, 4),
                     all.operand("b", state), all.operand("c", state)};
      if (s.has_state) call.inputs.push_back(all.operand("initial_h", {s.batch, s.channels, s.states}));
      call.outputs = {all.operand("y", {s.batch, s.steps, s.channels})};
      if (s.keep_state) call.outputs.push_back(all.operand("y1", {s.batch, s.channels, s.states}));
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp selective_scan_op = {
    .kind = "SelectiveScan",
    .doc =
        "Steps of a selective state space model (Mamba): h = exp(delta a) h + delta b u for each channel and state, y "
        "= h c.",
    .names = 1,
    .min_inputs = 5,
    .max_inputs = 6,
    .max_outputs = 2,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = [](const Call&, int) { return std::vector<std::string>(); },
    .infer = infer,
    .samples = samples,
    .defaults = {{"steps", std::int64_t{1}},
                 {"scales_b", std::int64_t{0}},
                 {"has_state", std::int64_t{0}},
                 {"keep_state", std::int64_t{0}}},
    .family = Family::recurrence,
    .flops = selective_scan_flops,
};

}  // namespace modelflow::ops
