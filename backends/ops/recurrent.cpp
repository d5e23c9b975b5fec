// LSTM and GRU over whole sequences, in float32 and with int8 weights. One text serves all four.
#include "backends/ops/recurrent_attrs.h"
#include "backends/ops/row_steps.h"
#include "backends/ops/work.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  const RecurrentAttrs attrs(call);
  std::vector<std::string> names = {"x", "w", "r"};
  if (attrs.quantized) names.insert(names.end(), {"w_scale", "r_scale"});
  if (attrs.has_bias) names.emplace_back("b");
  if (attrs.has_lengths) names.emplace_back("lengths");
  if (attrs.has_state) names.emplace_back("initial_h");
  if (attrs.has_state && attrs.lstm) names.emplace_back("initial_c");
  return names;
}

/// Weights: steps of int8 times their scale, one for each gate of each unit.
std::string weights_text(const std::string& name, int opset) {
  const std::string axis =
      opset < 13 ? " = Unsqueeze <axes = [2]> (" + name + "_scale)\n" : " = Unsqueeze (" + name + "_scale, last)\n";
  return name + "_float = Cast <to = 1> (" + name + ")\n" + name + "_unit" + axis + name + "_plain = Mul (" + name +
         "_float, " + name + "_unit)\n";
}

/// What the kernels do and this does not: h in steps as well, the rows of each step.
std::string quantized_text(int opset) {
  return row_steps_text(opset, "x") + "x_plain = Mul (steps, unit)\n" + weights_text("w", opset) +
         weights_text("r", opset);
}

/// The arguments of the standard op, "" where there is none in the middle.
std::string arguments(const RecurrentAttrs& attrs) {
  std::string text = attrs.x_batch_first ? "turned" : attrs.quantized ? "x_plain" : "x";
  text += attrs.quantized ? ", w_plain, r_plain" : ", w, r";
  if (attrs.has_bias || attrs.has_lengths || attrs.has_state) text += attrs.has_bias ? ", b" : ", \"\"";
  if (attrs.has_lengths || attrs.has_state) text += attrs.has_lengths ? ", whole_lengths" : ", \"\"";
  if (attrs.has_state) text += attrs.lstm ? ", initial_h, initial_c" : ", initial_h";
  return text;
}

/// Its results: those that are outputs are called y, y1, y2 in this order; the rest has no name.
std::string results(const RecurrentAttrs& attrs) {
  const std::string all = attrs.y_layout == "SDBH" ? "y" : "all";
  std::string text = attrs.y ? all : "\"\"";
  int next = attrs.y;
  const auto name = [&] { return next++ == 0 ? std::string("y") : "y" + std::to_string(next - 1); };
  if (attrs.y_h || attrs.y_c) text += ", " + (attrs.y_h ? name() : "\"\"");
  if (attrs.y_c) text += ", " + name();
  return text;
}

/// Y in another order of axes.
std::string ordered_text(const RecurrentAttrs& attrs) {
  const std::string perm = attrs.y_batch_first() ? "[2, 0, 1, 3]" : "[0, 2, 1, 3]";
  if (!attrs.y_joined()) return "y = Transpose <perm = " + perm + "> (all)\n";
  return "ordered = Transpose <perm = " + perm + "> (all)\njoined = Constant <value = int64[3] {0, 0, -1}> ()\n" +
         "y = Reshape (ordered, joined)\n";
}

std::string body(const Call& call, int opset) {
  if (opset < 7)
    throw Error(ErrorKind::unsupported, call.op + " needs opset 7, the model has " + std::to_string(opset));
  const RecurrentAttrs attrs(call);
  if (attrs.quantized && opset < 11)
    throw Error(ErrorKind::unsupported, call.op + " needs opset 11, the model has " + std::to_string(opset));
  std::string text = "{\n";
  if (attrs.quantized) text += quantized_text(opset);
  if (attrs.x_batch_first)
    text += std::string("turned = Transpose <perm = [1, 0, 2]> (") + (attrs.quantized ? "x_plain)\n" : "x)\n");
  if (attrs.has_lengths) text += "whole_lengths = Cast <to = 6> (lengths)\n";
  text += results(attrs) + (attrs.lstm ? " = LSTM" : " = GRU") +
          " <hidden_size: int = @hidden_size, direction: string = @direction";
  if (attrs.clip > 0) text += ", clip: float = @clip";
  if (!attrs.lstm) text += ", linear_before_reset: int = @linear_before_reset";
  text += "> (" + arguments(attrs) + ")\n";
  if (attrs.y && attrs.y_layout != "SDBH") text += ordered_text(attrs);
  return text + "}";
}

std::vector<std::string> attributes(const Call& call, int) {
  const RecurrentAttrs attrs(call);
  std::vector<std::string> names = {"hidden_size", "direction"};
  if (attrs.clip > 0) names.emplace_back("clip");
  if (!attrs.lstm) names.emplace_back("linear_before_reset");
  return names;
}

Attrs defaults(bool lstm) {
  Attrs attrs = {
      {"hidden_size", std::int64_t{1}}, {"direction", std::string("forward")}, {"has_bias", std::int64_t{0}},
      {"has_lengths", std::int64_t{0}}, {"has_state", std::int64_t{0}},        {"clip", 0.0f},
      {"x_layout", std::string("SBI")}, {"y_layout", std::string("SDBH")},     {"outputs", std::string("Y")}};
  if (!lstm) attrs.set("linear_before_reset", 0);
  return attrs;
}

}  // namespace

extern const FusedOp lstm_op = {
    .kind = "LSTM",
    .doc = "LSTM over a whole sequence, in either or both directions; sequence and batch axes in the order asked for.",
    .names = 2,
    .min_inputs = 3,
    .max_inputs = 7,
    .max_outputs = 3,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer_recurrent,
    .samples = lstm_samples,
    .defaults = defaults(true),
    .family = Family::recurrence,
    .flops = recurrent_flops,
};

extern const FusedOp gru_op = {
    .kind = "GRU",
    .doc = "GRU over a whole sequence, in either or both directions; sequence and batch axes in the order asked for.",
    .names = 2,
    .min_inputs = 3,
    .max_inputs = 6,
    .max_outputs = 2,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer_recurrent,
    .samples = gru_samples,
    .defaults = defaults(false),
    .family = Family::recurrence,
    .flops = recurrent_flops,
};

extern const FusedOp qlstm_op = {
    .kind = "QLSTM",
    .doc = "LSTM in int8: rows of x and h quantized on the way in, weights per gate and unit.",
    .names = 0,
    .min_inputs = 5,
    .max_inputs = 9,
    .max_outputs = 3,
    .input_types = {DType::f32, DType::i8, DType::i8, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer_recurrent,
    .samples = qlstm_samples,
    .defaults = defaults(true),
    .family = Family::recurrence,
    .base = "LSTM",
    .form = Form::i8,
    .flops = recurrent_flops,
};

extern const FusedOp qgru_op = {
    .kind = "QGRU",
    .doc = "GRU in int8: rows of x and h quantized on the way in, weights per gate and unit.",
    .names = 0,
    .min_inputs = 5,
    .max_inputs = 8,
    .max_outputs = 2,
    .input_types = {DType::f32, DType::i8, DType::i8, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer_recurrent,
    .samples = qgru_samples,
    .defaults = defaults(false),
    .family = Family::recurrence,
    .base = "GRU",
    .form = Form::i8,
    .flops = recurrent_flops,
};

}  // namespace modelflow::ops
