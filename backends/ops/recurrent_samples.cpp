// Sample calls of LSTM and GRU, and of their int8 forms.
#include "backends/ops/recurrent_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

struct Sample {
  std::int64_t seq, batch, input, hidden;
  Attrs attrs = {};
};

Attrs of(const char* name, const char* value) { return {{name, std::string(value)}}; }
Attrs on(const char* name) { return {{name, std::int64_t{1}}}; }

/// Every option once on something small and odd, then layers as they are met.
std::vector<Sample> layers(bool lstm) {
  const Attrs bias = on("has_bias"), state = with(bias, on("has_state"));
  const Attrs both = with(bias, of("direction", "bidirectional")), reverse = with(bias, of("direction", "reverse"));
  const Attrs batch_first = with(of("x_layout", "BSI"), of("y_layout", "BSDH"));
  const char* all = lstm ? "Y Y_h Y_c" : "Y Y_h";
  return {
      {5, 1, 7, 16},
      {4, 3, 10, 13, bias},
      {6, 2, 20, 40, reverse},
      {5, 7, 33, 24, with(both, of("outputs", all))},
      {1, 1, 64, 128, with(state, of("outputs", all))},
      {3, 13, 5, 37, with(with(both, on("has_state")), of("outputs", all))},
      {7, 4, 12, 19, with(with(both, on("has_lengths")), of("outputs", all))},
      {7, 3, 12, 19, with(with(state, on("has_lengths")), of("outputs", lstm ? "Y_h Y_c" : "Y_h"))},
      {4, 2, 9, 21, with(bias, of("outputs", "Y_h"))},
      {4, 2, 9, 21, with(reverse, of("outputs", lstm ? "Y Y_c" : "Y_h"))},
      {5, 3, 18, 17, with(both, batch_first)},
      {5, 3, 18, 17, with(both, of("y_layout", "SBDH"))},
      {5, 2, 18, 17, with(bias, with(of("x_layout", "BSI"), of("outputs", "Y_h")))},
      {5, 3, 18, 17, with(both, {{"clip", 0.3f}})},
      {70, 2, 48, 64, with(both, batch_first)},
      {5, 3, 18, 17, with(both, with(of("x_layout", "BSI"), of("y_layout", "BSH")))},
      {4, 3, 18, 17, with(bias, with(of("y_layout", "SBH"), of("outputs", all)))},
      {3, 1, 256, 300, with(bias, batch_first)},
      {2, 9, 8, 180, with(state, of("outputs", all))},
  };
}

Call call_of(Samples& made, const std::string& op, const Sample& sample) {
  const bool lstm = op.ends_with("LSTM");
  Call call{op, with(find_fused_op(op)->defaults, sample.attrs), {}, {}};
  call.attrs.set("hidden_size", sample.hidden);
  const RecurrentAttrs attrs(call);
  const std::int64_t dirs = attrs.dirs(), rows = attrs.gates() * sample.hidden;
  call.inputs.push_back(made.operand("x", attrs.x_batch_first ? Dims{sample.batch, sample.seq, sample.input}
                                                              : Dims{sample.seq, sample.batch, sample.input}));
  for (const auto& [name, depth] : {std::pair{"w", sample.input}, std::pair{"r", sample.hidden}}) {
    const Dims dims = {dirs, rows, depth};
    call.inputs.push_back(
        attrs.quantized ? Operand{name, DType::i8, Shape::of(dims), &made.weights.emplace_back(sample_steps(dims))}
                        : made.operand(name, dims, depth));
  }
  // 5000 is about the mean square of the steps: products of every depth end near one.
  if (attrs.quantized) {
    call.inputs.push_back(made.operand("w_scale", {dirs, rows}, 5000 * sample.input));
    call.inputs.push_back(made.operand("r_scale", {dirs, rows}, 5000 * sample.hidden));
  }
  if (attrs.has_bias) call.inputs.push_back(made.operand("b", {dirs, 2 * rows}, 9));
  if (attrs.has_lengths) {
    std::vector<float> lengths;  // from the whole sequence down to one step
    for (std::int64_t i = 0; i < sample.batch; ++i)
      lengths.push_back(static_cast<float>(std::max<std::int64_t>(sample.seq - 2 * i, 1)));
    call.inputs.push_back({"lengths", DType::f32, Shape::of({sample.batch}),
                           &made.weights.emplace_back(Tensor::of<float>({sample.batch}, lengths))});
  }
  // As small as states are: in int8 their steps are a share of the largest.
  const std::int64_t depth = attrs.quantized ? 9 : 0;
  if (attrs.has_state) call.inputs.push_back(made.operand("initial_h", {dirs, sample.batch, sample.hidden}, depth));
  if (attrs.has_state && lstm) call.inputs.push_back(made.operand("initial_c", {dirs, sample.batch, sample.hidden}));
  if (!infer_recurrent(call)) throw Error(ErrorKind::internal, "a sample of " + op + " contradicts itself");
  for (std::size_t i = 0; i < call.outputs.size(); ++i) call.outputs[i].name = "y" + (i ? std::to_string(i) : "");
  return call;
}

Samples samples_of(const std::string& op) {
  const bool lstm = op.ends_with("LSTM");
  Samples samples;
  for (const Sample& sample : layers(lstm)) {
    samples.calls.push_back(call_of(samples, op, sample));
    if (lstm) continue;
    Sample after = sample;
    after.attrs = with(after.attrs, on("linear_before_reset"));
    samples.calls.push_back(call_of(samples, op, after));
  }
  return samples;
}

}  // namespace

std::vector<Call> lstm_samples() {
  static const Samples made = samples_of("LSTM");
  return made.calls;
}

std::vector<Call> gru_samples() {
  static const Samples made = samples_of("GRU");
  return made.calls;
}

std::vector<Call> qlstm_samples() {
  static const Samples made = samples_of("QLSTM");
  return made.calls;
}

std::vector<Call> qgru_samples() {
  static const Samples made = samples_of("QGRU");
  return made.calls;
}

}  // namespace modelflow::ops
