// The fused op Activation: one activation function on every element.
#include "backends/ops/activation_body.h"

namespace modelflow::ops {
namespace {

std::string body(const Call& call, int opset) { return "{\n" + activation_body(call, opset, "x", "y") + "}"; }

std::vector<std::string> inputs(const Call&) { return {"x"}; }

std::vector<std::string> attributes(const Call& call, int opset) { return activation_attributes(call, opset); }

Verdict infer(Call& call) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (Verdict v = check_activation(call); !v) return v;
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = call.in(0).shape;
  return yes();
}

std::vector<Call> samples() {
  std::vector<Call> calls;
  const auto add = [&](Attrs attrs, Dims dims) {
    const Operand operand{"x", DType::f32, Shape::of(dims)};
    calls.push_back({"Activation", std::move(attrs), {operand}, {operand}});
    calls.back().outputs[0].name = "y";
  };
  for (const std::string& activation : activation_names()) {
    add(activation_sample(activation), {2, 197, 768});
    add(activation_sample(activation), {7, 3, 5});
  }
  add(activation_sample("HardSwish").set("post_scale", Attr(2.0f)).set("post_shift", Attr(0.5f)), {3, 50});
  add(activation_sample("Gelu"), {});
  add(activation_sample("SiLU"), {4, 0, 3});
  return calls;
}

}  // namespace

extern const FusedOp activation_op = {
    .kind = "Activation",
    .doc = "One activation function on every element.",
    .names = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = with_activation({}),
    .in_place = true,
    .elementwise = true,
};

}  // namespace modelflow::ops
