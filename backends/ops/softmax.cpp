// The fused op Softmax: softmax or its logarithm, of scores with a scale and a mask.
#include <algorithm>
#include <limits>

#include "backends/call_attrs.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/softmax_attrs.h"
#include "backends/ops/words.h"

namespace modelflow::ops {

SoftmaxAttrs::SoftmaxAttrs(const CallAttrs& attrs)
    : log(attrs.flag("log")),
      has_mask(attrs.flag("has_mask")),
      boolean_mask(attrs.flag("boolean_mask")),
      scale(attrs.number("scale")),
      mask_true(attrs.number("mask_true")),
      mask_false(attrs.number("mask_false")),
      true_replaces(word(attrs, "replaces", {"none", "true", "false"}) == "true"),
      false_replaces(attrs.text("replaces") == "false"),
      from_end(-static_cast<std::size_t>(attrs.integer("axis"))) {
  if (attrs.integer("axis") >= 0) throw Error(ErrorKind::invalid_input, "axis is not negative");
  if (has_mask && from_end != 1) throw Error(ErrorKind::invalid_input, "a mask needs the last axis");
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  if (call.inputs.size() == 1) return {"x"};
  return {"x", "mask"};
}

std::string body(const Call& call, int opset) {
  const SoftmaxAttrs softmax(call);
  if (opset < 11 || (opset < 13 && softmax.from_end != 1))
    throw Error(ErrorKind::unsupported, "Softmax of one axis needs opset 13, not " + std::to_string(opset));
  std::string text = "{\n", x = "x";
  const auto number = [&](const std::string& name, const char* attribute, float value) {
    const std::string reference = name + " = Constant <value_float: float = @" + attribute + "> ()\n";
    text += opset < 12 ? constant_text(name, value) : reference;
  };
  if (softmax.scale != 1) {
    number("factor", "scale", softmax.scale);
    text += "scaled = Mul (x, factor)\n";
    x = "scaled";
  }
  if (softmax.has_mask) {
    const bool adds = !softmax.true_replaces && !softmax.false_replaces;
    if (softmax.boolean_mask && !softmax.false_replaces) number("on", "mask_true", softmax.mask_true);
    if (softmax.boolean_mask && !softmax.true_replaces) number("off", "mask_false", softmax.mask_false);
    if (softmax.boolean_mask && adds) text += "numbers = Where (mask, on, off)\n";
    text += "masked = ";
    if (softmax.true_replaces) text += "Where (mask, on, " + x + ")\n";
    if (softmax.false_replaces) text += "Where (mask, " + x + ", off)\n";
    if (adds) text += "Add (" + x + (softmax.boolean_mask ? ", numbers)\n" : ", mask)\n");
    x = "masked";
  }
  return text + "y = " + (softmax.log ? "LogSoftmax" : "Softmax") + " <axis: int = @axis> (" + x + ")\n}";
}

std::vector<std::string> attributes(const Call& call, int opset) {
  const SoftmaxAttrs softmax(call);
  std::vector<std::string> names = {"axis"};
  if (opset < 12) return names;
  if (softmax.scale != 1) names.emplace_back("scale");
  if (softmax.has_mask && softmax.boolean_mask) names.insert(names.end(), {"mask_true", "mask_false"});
  return names;
}

/// The mask repeats over the scores and never the other way round.
Verdict check_mask(const Operand& mask, const Shape& x) {
  if (!mask.shape.has_rank() || !x.has_rank()) return yes();
  if (mask.shape.rank() > x.rank()) return no("is of a higher rank than x", mask.name);
  for (std::size_t i = 0; i < mask.shape.rank(); ++i) {
    const Dim &dim = mask.shape[i], &wanted = x[x.rank() - mask.shape.rank() + i];
    if (dim.known() && dim.value() != 1 && wanted.known() && !(dim == wanted))
      return no("is " + dim.str() + " where x is " + wanted.str(), mask.name);
  }
  return yes();
}

Verdict infer(Call& call) {
  if (call.inputs.empty()) return no("takes at least one input");
  Verdict why;
  const std::optional<SoftmaxAttrs> softmax = read_attrs<SoftmaxAttrs>(call, why);
  if (!softmax) return why;
  const Shape& x = call.in(0).shape;
  if (x.has_rank() && x.rank() < softmax->from_end) return no("axis lies outside of x");
  if (softmax->has_mask)
    if (Verdict v = check_mask(call.in(1), x); !v) return v;
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = call.in(0).shape;
  return yes();
}

/// Numbers as masks have them, or flags: nothing allowed in every fifth row of flags.
Tensor mask_of(const Dims& dims, bool flags) {
  const Tensor noise = sample_weights(dims, 1);
  const auto rows = static_cast<std::size_t>(dims.empty() ? 1 : dims.back());
  const auto seen = [&](std::size_t i) { return i % 3 != 1 && i / rows % 5 != 4; };
  return Tensor::make(flags ? DType::boolean : DType::f32, dims, [&](std::byte* bytes) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(noise.elements()); ++i) {
      if (flags) {
        bytes[i] = static_cast<std::byte>(seen(i));
      } else {
        reinterpret_cast<float*>(bytes)[i] = i % 7 == 5 ? std::numeric_limits<float>::lowest() : noise.as<float>()[i];
      }
    }
  });
}

/// Scores far from zero: a difference of two of them is nothing or everything.
Tensor far(const Dims& dims) {
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i)
      reinterpret_cast<float*>(bytes)[i] = i % 5 == 1 ? -3e10f : -1e10f;
  });
}

struct Sample {
  Dims x;
  std::int64_t axis = -1;
  float scale = 1;
  Dims mask = {};
  bool masked = false, flags = false, far = false;
  const char* replaces = "none";
};

void add(Samples& all, const Sample& sample, bool log) {
  Attrs attrs{{"axis", sample.axis}, {"scale", sample.scale}, {"log", std::int64_t{log}}};
  Call call{"Softmax", std::move(attrs), {all.operand("x", sample.x)}, {{"y", DType::f32, Shape::of(sample.x)}}};
  if (sample.far) {
    all.weights.push_back(far(sample.x));
    call.inputs[0] = constant_operand("x", all.weights.back());
  }
  if (sample.masked) {
    all.weights.push_back(mask_of(sample.mask, sample.flags));
    call.inputs.push_back(constant_operand("mask", all.weights.back()));
    call.attrs.set("has_mask", 1).set("boolean_mask", sample.flags ? 1 : 0);
    call.attrs.set("mask_true", Attr(0.5f)).set("mask_false", Attr(std::numeric_limits<float>::lowest()));
    call.attrs.set("replaces", sample.replaces);
  }
  all.calls.push_back(std::move(call));
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    for (const bool log : {false, true}) {
      add(all, {.x = {1, 1000}}, log);
      add(all, {.x = {2, 3, 37}, .scale = 0.125f}, log);
      add(all, {.x = {70, 5}, .scale = -30}, log);
      add(all, {.x = {7, 1}}, log);
      add(all, {.x = {2, 3, 17, 33}, .scale = 0.25f, .mask = {2, 1, 1, 33}, .masked = true}, log);
      add(all, {.x = {2, 3, 16, 16}, .mask = {16, 16}, .masked = true}, log);
      add(all, {.x = {2, 3, 5, 40}, .mask = {3, 5, 1}, .masked = true}, log);
      add(all, {.x = {2, 3, 19, 65}, .scale = 0.5f, .mask = {2, 1, 19, 65}, .masked = true, .flags = true}, log);
      add(all, {.x = {4, 6, 21}, .mask = {6, 1}, .masked = true, .flags = true}, log);
      for (const char* which : {"true", "false"}) {
        add(all, {.x = {2, 10, 37}, .scale = 0.5f, .mask = {10, 37}, .masked = true, .flags = true, .replaces = which},
            log);
        add(all, {.x = {2, 10, 5}, .mask = {2, 10, 1}, .masked = true, .flags = true, .replaces = which}, log);
      }
      add(all, {.x = {2, 21, 9, 11}, .axis = -3}, log);
      add(all, {.x = {2, 16, 150}, .axis = -2, .scale = 2}, log);
      add(all, {.x = {5, 3}, .axis = -2}, log);
      add(all, {.x = {3, 40}, .scale = 0.3f, .far = true}, log);
      add(all, {.x = {19, 21}, .axis = -2, .scale = 0.3f, .far = true}, log);
      add(all, {.x = {0, 4}}, log);
      add(all, {.x = {3, 4, 0}, .axis = -2}, log);
    }
    add(all, {.x = {3, 300, 300}, .scale = 0.3f, .mask = {}, .masked = true}, false);
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp softmax_op = {
    .kind = "Softmax",
    .doc =
        "Softmax of scale * x + mask, or its logarithm, along one axis. A mask repeats over x and holds numbers, or "
        "flags for one of two numbers, one of which may stand in place of x.",
    .names = 2,
    .min_inputs = 1,
    .max_inputs = 2,
    .input_types = {DType::f32, DType::undefined},  // a mask is float32 or boolean
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"axis", std::int64_t{-1}},
                 {"scale", 1.0f},
                 {"log", std::int64_t{0}},
                 {"has_mask", std::int64_t{0}},
                 {"boolean_mask", std::int64_t{0}},
                 {"mask_true", 0.0f},
                 {"mask_false", 0.0f},
                 {"replaces", std::string("none")}},
    .in_place = true,
    .axis = "axis",
};

}  // namespace modelflow::ops
