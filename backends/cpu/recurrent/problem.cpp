// Reads and checks calls of LSTM and GRU, and estimates their work.
#include "backends/cpu/recurrent/problem.h"

#include <algorithm>

#include "backends/cpu/frame/typed_input.h"

namespace modelflow::cpu {
namespace {

using ops::RecurrentAttrs;

struct Reader {
  const char* op;
  const Invocation& call;

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::invalid_input, std::string(op) + ": " + message);
  }
  View view(std::size_t i, const char* what, const Dims& dims, DType dtype = DType::f32) const {
    const View view = call.input(i);
    if (view.dtype != dtype)
      fail(std::string(what) + " is " + std::string(name(view.dtype)) + ", not " + std::string(name(dtype)));
    if (!std::ranges::equal(view.dims, dims))
      fail(std::string(what) + " is " + text(view.dims) + ", not " + text(dims));
    return view;
  }
  const float* floats(std::size_t i, const char* what, const Dims& dims) const {
    return static_cast<const float*>(view(i, what, dims).data);
  }
};

double extent(const Shape& shape, std::size_t axis) {
  return shape.has_rank() && shape.rank() > axis && shape[axis].known() ? static_cast<double>(shape[axis].value()) : 1;
}

}  // namespace

RecurrentProblem::RecurrentProblem(const RecurrentAttrs& attributes, const Invocation& call) : attrs(attributes) {
  const Reader read{attrs.lstm ? "LSTM" : "GRU", call};
  if (call.inputs() != attrs.inputs()) read.fail("takes " + std::to_string(attrs.inputs()) + " inputs");
  const View view = call.input(0);
  if (view.dtype != DType::f32 || view.dims.size() != 3)
    read.fail("x is " + text(view.dims) + ", not float32 of rank 3");
  x = static_cast<const float*>(view.data);
  const Dims& dims = {view.dims.begin(), view.dims.end()};
  seq = static_cast<std::size_t>(dims[attrs.x_batch_first ? 1 : 0]);
  batch = static_cast<std::size_t>(dims[attrs.x_batch_first ? 0 : 1]);
  input = static_cast<std::size_t>(dims[2]);
  hidden = static_cast<std::size_t>(attrs.hidden);
  dirs = static_cast<std::size_t>(attrs.dirs());
  const std::int64_t rows = attrs.gates() * attrs.hidden, rest = dims[attrs.x_batch_first ? 0 : 1];
  const DType weights = attrs.quantized ? DType::i8 : DType::f32;
  read.view(1, "w", {attrs.dirs(), rows, dims[2]}, weights);
  read.view(2, "r", {attrs.dirs(), rows, attrs.hidden}, weights);
  for (std::size_t i = 3; i < attrs.bias_index(); ++i) read.floats(i, "a scale", {attrs.dirs(), rows});
  if (attrs.has_bias) read.floats(attrs.bias_index(), "b", {attrs.dirs(), 2 * rows});
  if (attrs.has_state) initial_h = read.floats(attrs.state_index(), "initial_h", {attrs.dirs(), rest, attrs.hidden});
  if (attrs.has_state && attrs.lstm)
    initial_c = read.floats(attrs.state_index() + 1, "initial_c", {attrs.dirs(), rest, attrs.hidden});
  if (!attrs.has_lengths) return;
  lengths = read.floats(attrs.lengths_index(), "lengths", {rest});
  for (std::size_t row = 0; row < batch; ++row)
    if (!(lengths[row] >= 0 && static_cast<double>(lengths[row]) <= static_cast<double>(seq)))
      read.fail("a length is not within the " + std::to_string(seq) + " steps of x");
}

void RecurrentProblem::allocate(Invocation& call) {
  const auto s = static_cast<std::int64_t>(seq), n = static_cast<std::int64_t>(batch), d = attrs.dirs(),
             h = attrs.hidden;
  std::size_t next = 0;
  const auto output = [&](const Dims& dims) { return static_cast<float*>(call.output(next++, dims)); };
  if (attrs.y) {
    const bool turned = attrs.y_batch_first();
    y = output(attrs.y_layout == "SDBH" ? Dims{s, d, n, h}
               : attrs.y_joined()       ? Dims{turned ? n : s, turned ? s : n, d * h}
                                        : Dims{turned ? n : s, turned ? s : n, d, h});
    if (lengths) std::fill_n(y, seq * batch * dirs * hidden, 0.0f);  // what lies behind the end of a sequence
  }
  if (attrs.y_h) y_h = output({d, n, h});
  if (attrs.y_c) y_c = output({d, n, h});
}

float* RecurrentProblem::y_row(std::size_t step, std::size_t dir, std::size_t row) const {
  if (!y) return nullptr;
  const std::size_t at = attrs.y_layout == "SDBH" ? (step * dirs + dir) * batch + row
                         : attrs.y_batch_first()  ? (row * seq + step) * dirs + dir
                                                  : (step * batch + row) * dirs + dir;
  return y + at * hidden;
}

Verdict accepts_recurrent(const Call& call, const Target&) {
  std::size_t inputs = 0;
  bool quantized = false;
  try {
    const RecurrentAttrs attrs(call);
    inputs = attrs.inputs();
    quantized = attrs.quantized;
    for (std::size_t i = 1; i < std::min(call.inputs.size(), attrs.bias_index() + attrs.has_bias); ++i)
      if (!call.in(i).constant) return no("is not constant", call.in(i).name);
  } catch (const Error& error) {
    return no(error.what());
  }
  if (call.inputs.size() != inputs) return no("the attributes ask for " + std::to_string(inputs) + " inputs");
  for (std::size_t i = 0; i < inputs; ++i) {
    const DType want = quantized && (i == 1 || i == 2) ? DType::i8 : DType::f32;
    if (call.in(i).dtype != want) return no("is not " + std::string(name(want)), call.in(i).name);
  }
  return yes();
}

RecurrentWork recurrent_work(const Call& call) {
  const RecurrentAttrs attrs(call);
  const Shape& x = call.in(0).shape;
  const double rows = extent(x, 0) * extent(x, 1), input = extent(x, 2), hidden = static_cast<double>(attrs.hidden);
  const double units = static_cast<double>(attrs.dirs() * attrs.gates()) * hidden;
  const double size = attrs.quantized ? 1 : 4;
  RecurrentWork work;
  work.flops = 2 * rows * units * (input + hidden);
  work.gates = rows * units;
  work.step_bytes = size * units * hidden;
  work.steps = extent(x, attrs.x_batch_first ? 1 : 0);
  work.bytes = 4 * rows * (input + static_cast<double>(attrs.dirs()) * hidden) + size * units * input;
  return work;
}

}  // namespace modelflow::cpu
