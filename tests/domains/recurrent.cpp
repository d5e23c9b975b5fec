// LSTM and GRU, in float32 and with weights in 8 bits, and selective state spaces.
#include "backends/ops/recurrent_attrs.h"
#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

bool recurrent(const Chosen& c, Operands& made) {
  const bool lstm = made.call.op.ends_with("LSTM");
  if (!lstm && c.word("outputs").find("Y_c") != std::string::npos) return false;
  const ops::RecurrentAttrs attrs(made.call);
  const std::int64_t seq = c.number("seq"), batch = c.number("batch"), input = c.number("input"), hidden = attrs.hidden;
  const std::int64_t dirs = attrs.dirs(), rows = attrs.gates() * hidden;
  made.feed("x", made.normal(attrs.x_batch_first ? Dims{batch, seq, input} : Dims{seq, batch, input}));
  for (const auto& [name, depth] : {std::pair{"w", input}, std::pair{"r", hidden}}) {
    const Dims dims = {dirs, rows, depth};
    made.constant(name, attrs.quantized ? made.steps(dims) : made.weights(dims, depth));
  }
  if (attrs.quantized) {
    made.constant("w_scale", made.weights({dirs, rows}, 5000 * input));
    made.constant("r_scale", made.weights({dirs, rows}, 5000 * hidden));
  }
  if (attrs.has_bias) made.constant("b", made.uniform({dirs, 2 * rows}, -0.5, 0.5));
  if (attrs.has_lengths)
    made.feed_as_is("lengths", Tensor::make(DType::f32, {batch}, [&](std::byte* bytes) {
                      for (std::int64_t i = 0; i < batch; ++i)
                        reinterpret_cast<float*>(bytes)[i] = static_cast<float>(i == 0 ? seq : made.below(seq + 1));
                    }));
  const Dims state = {dirs, batch, hidden};
  if (attrs.has_state) made.feed("initial_h", made.uniform(state, -0.5, 0.5));
  if (attrs.has_state && lstm) made.feed("initial_c", made.normal(state));
  return true;
}

bool selective_scan(const Chosen& c, Operands& made) {
  const std::int64_t batch = c.number("batch"), length = c.number("steps") + c.number("more"),
                     channels = c.number("channels"), states = c.number("states");
  made.feed("u", made.normal({batch, length, channels}));
  made.feed("delta", made.uniform({batch, length, channels}, 0, 1));
  made.constant("a", made.uniform({channels, states}, -4, 0.5), c.is("constant"));
  // A huge number of u goes into every state: what is left of it where they cancel depends on the order of their sum.
  const bool may_cancel = made.special() != Special::huge;
  for (const char* name : {"b", "c"}) {
    const Dims dims = {batch, length, states};
    made.feed(name, may_cancel ? made.normal(dims) : made.uniform(dims, 0.1f, 2));
  }
  if (c.is("has_state")) made.feed("initial_h", made.normal({batch, channels, states}));
  return true;
}

// Neither empty batches, which end the process in ONNX Runtime, nor sequences without a step, of which it makes zeros
// or the initial state.
// The most units are more than a multiprocessor of a GPU has room for.
std::vector<Axis> axes(bool lstm, bool quantized) {
  std::vector<Axis> axes = {numbers("seq", {1, 2, 5, 13}),
                            numbers("batch", {1, 2, 3, 7, 9}),
                            numbers("input", {1, 7, 16, 33, 64}),
                            quantized ? numbers("hidden_size", {1, 13, 16, 17, 33, 48})
                                      : numbers("hidden_size", {1, 13, 16, 17, 33, 48, 181, 184}),
                            words("direction", {"forward", "reverse", "bidirectional"}),
                            flag("has_bias"),
                            flag("has_lengths"),
                            flag("has_state"),
                            reals("clip", {0, 0, 0.3f}),
                            words("x_layout", {"SBI", "BSI"}),
                            words("y_layout", {"SDBH", "SBDH", "BSDH", "SBH", "BSH"})};
  axes.push_back(lstm ? words("outputs", {"Y", "Y_h", "Y_c", "Y Y_h", "Y Y_c", "Y_h Y_c", "Y Y_h Y_c"})
                      : words("outputs", {"Y", "Y_h", "Y Y_h"}));
  if (!lstm) axes.push_back(flag("linear_before_reset"));
  return axes;
}

}  // namespace

// ONNX Runtime's gates make numbers of NaN; here it stays.
std::vector<Domain> recurrent_domains() {
  return {{"LSTM", axes(true, false), recurrent, {Special::tiny}},
          {"GRU", axes(false, false), recurrent, {Special::tiny}},
          {"QLSTM", axes(true, true), recurrent, {Special::tiny}},
          {"QGRU", axes(false, true), recurrent, {Special::tiny}},
          {"SelectiveScan",
           {numbers("steps", {1, 2, 5, 13, 70}), numbers("more", {0, 0, 3}), numbers("batch", {0, 1, 2, 3}),
            numbers("channels", {1, 7, 16, 33, 64, 65, 130}), numbers("states", {1, 3, 16, 37}), flag("scales_b"),
            flag("has_state"), flag("keep_state"), flag("constant")},
           selective_scan,
           {Special::nan, Special::infinite, Special::huge, Special::tiny}}};
}

}  // namespace modelflow::domains
