// The fused op TalkingHeads: attention whose heads are mixed, before the softmax and behind it (arXiv 2003.02436).
#include "backends/ops/talking_heads.h"

#include <cmath>
#include <optional>

#include "backends/ops/attention_attrs.h"
#include "backends/ops/fits.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/split_heads.h"

namespace modelflow::ops {

TalkingHeadsAttrs::TalkingHeadsAttrs(const CallAttrs& attrs)
    : heads(attrs.integer("num_heads")),
      head_dim(attrs.integer("head_dim")),
      scale(attrs.number("scale")),
      packed(attrs.flag("packed")),
      has_bias(attrs.flag("has_bias")) {
  if (heads < 1 || heads > kMostHeads)
    throw Error(ErrorKind::invalid_input, "there are " + std::to_string(heads) + " heads");
  if (head_dim < 0) throw Error(ErrorKind::invalid_input, "heads are of size " + std::to_string(head_dim));
  if (!std::isfinite(scale)) throw Error(ErrorKind::invalid_input, "scale is not finite");
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const TalkingHeadsAttrs attention(call);
  std::vector<std::string> names = {"q", "k", "v"};
  if (attention.packed) names = {"qkv"};
  names.insert(names.end(), {"before", "after"});
  if (attention.has_bias) names.emplace_back("bias");
  return names;
}

std::string turned_text(const std::string& x, const char* perm) {
  return x + "_heads = Transpose <perm = " + perm + "> (" + x + "_split)\n";
}

/// y = scores of `x`, all tokens of a head in one row, mixed. A product from the left moves nothing; its matrix is
/// there for each image, because ONNX Runtime repeats none for an empty batch.
std::string mixed_text(const std::string& y, const std::string& weights, const std::string& x) {
  return y + "_rows = Reshape (" + x + ", rows)\n" + weights + "_wide = Expand (" + weights + ", images)\n" + y +
         "_mixed = MatMul (" + weights + "_wide, " + y + "_rows)\n";
}

std::string body(const Call& call, int opset) {
  const TalkingHeadsAttrs attention(call);
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "TalkingHeads needs opset 13 or later, not " + std::to_string(opset));
  const std::string size = attention.head_dim != 0 ? "head_dim" : "";
  std::string text = "{\n" + head_numbers_text(!size.empty());
  if (attention.packed) {
    text += "three = Constant <value = int64[1] {3}> ()\nall = Mul (n, three)\n" +
            split_heads_text("qkv", "all", size) +
            "parts = Concat <axis = 0> (n, n, n)\nq_split, k_split, v_split = Split <axis = 2> (qkv_split, parts)\n";
  } else {
    for (const char* x : {"q", "k", "v"}) text += split_heads_text(x, "n", size);
  }
  text += turned_text("q", "[0, 2, 1, 3]") + turned_text("k", "[0, 2, 3, 1]") + turned_text("v", "[0, 2, 1, 3]") +
          "scale = Constant <value_float: float = @scale> ()\nq_scaled = Mul (q_heads, scale)\n"
          "scores = MatMul (q_scaled, k_heads)\nextents = Shape (" +
          (attention.packed ? "qkv" : "q") +
          ")\nfirst = Constant <value = int64[1] {0}> ()\nbatch = Gather <axis = 0> (extents, first)\n"
          "tokens = Gather <axis = 0> (extents, one)\npairs = Mul (tokens, tokens)\n"
          "rows = Concat <axis = 0> (copied, pairs)\nshape = Concat <axis = 0> (batch, n, tokens, tokens)\n"
          "images = Concat <axis = 0> (batch, one, one)\n" +
          mixed_text("scores", "before", "scores") +
          "talking = Reshape (scores_mixed, shape)\nweights = Softmax <axis = -1> (talking)\n" +
          mixed_text("weights", "after", "weights");
  if (attention.has_bias)
    text +=
        "by_head = Constant <value = int64[2] {-1, 1}> ()\nof_heads = Reshape (bias, by_head)\n"
        "weights_biased = Add (weights_mixed, of_heads)\n";
  return text + "listening = Reshape (" + (attention.has_bias ? "weights_biased" : "weights_mixed") +
         ", shape)\ncontext = MatMul (listening, v_heads)\nturned = Transpose <perm = [0, 2, 1, 3]> (context)\n" +
         (size.empty() ? "context_shape = Shape (context)\nthird = Constant <value = int64[1] {3}> ()\n"
                         "size = Gather <axis = 0> (context_shape, third)\n"
                       : "") +
         "width = Mul (" + (size.empty() ? "size" : size) +
         ", n)\ntarget = Concat <axis = 0> (copied, width)\ny = Reshape (turned, target)\n}";
}

std::vector<std::string> attributes(const Call& call, int) {
  std::vector<std::string> names = {"num_heads", "scale"};
  if (TalkingHeadsAttrs(call).head_dim != 0) names.emplace_back("head_dim");
  return names;
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<TalkingHeadsAttrs> attention = read_attrs<TalkingHeadsAttrs>(call, why);
  if (!attention) return why;
  HeadExtents extents;
  if (attention->head_dim) extents.size = attention->head_dim;
  for (std::size_t i = 0; i < attention->operands(); ++i)
    if (Verdict v = join_extents(call.in(i), attention->heads * (attention->packed ? 3 : 1), extents); !v) return v;
  for (std::size_t i = attention->operands(); i < attention->inputs(); ++i)
    if (Verdict v = fits(call.in(i), std::vector<Dim>(i == attention->bias_index() ? 1 : 2, attention->heads)); !v)
      return v;
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape({extents.batch, extents.tokens, extents.size * Dim(attention->heads)});
  if (extents.size.known()) call.attrs.set("head_dim", extents.size.value());
  return yes();
}

double extent(const Dim& dim) { return static_cast<double>(dim.number().value_or(1)); }

/// Scores of all heads.
double scores_of(const Call& call) {
  const Shape& y = call.outputs.at(0).shape;
  return y.has_rank() ? extent(y[0]) * extent(y[1]) * extent(y[1]) * static_cast<double>(TalkingHeadsAttrs(call).heads)
                      : 1;
}

double flops(const Call& call) {
  const double heads = static_cast<double>(TalkingHeadsAttrs(call).heads);
  const Shape& y = call.outputs.at(0).shape;
  return 4 * scores_of(call) * ((y.has_rank() ? extent(y[2]) : 1) / heads + heads);
}

/// Passes over the scores, and turning the operands and the result.
double plain_bytes(const Call& call) {
  const double passes = TalkingHeadsAttrs(call).has_bias ? 10 : 8;
  return 4 * (passes * scores_of(call) + 8 * call.outputs.at(0).shape.known_elements());
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    struct Sample {
      std::int64_t batch, tokens, heads, size;
      bool packed, bias;
    };
    for (const Sample& s : std::initializer_list<Sample>{{1, 196, 4, 48, true, true},
                                                         {1, 196, 8, 48, true, true},
                                                         {2, 65, 16, 24, true, false},
                                                         {1, 33, 3, 17, false, true},
                                                         {3, 5, 1, 3, false, false},
                                                         {0, 9, 2, 8, true, true}}) {
      Call call{"TalkingHeads", {}, {}, {}};
      call.attrs.set("num_heads", s.heads).set("packed", s.packed ? 1 : 0).set("has_bias", s.bias ? 1 : 0);
      call.attrs.set("scale", Attr(1 / std::sqrt(static_cast<float>(s.size))));
      const std::int64_t width = s.heads * s.size;
      if (s.packed) call.inputs.push_back(all.operand("qkv", {s.batch, s.tokens, 3 * width}));
      for (const char* name : {"q", "k", "v"})
        if (!s.packed) call.inputs.push_back(all.operand(name, {s.batch, s.tokens, width}));
      for (const char* name : {"before", "after"})
        call.inputs.push_back(all.operand(name, {s.heads, s.heads}, s.heads));
      if (s.bias) call.inputs.push_back(all.operand("bias", {s.heads}, 9));
      if (!infer(call)) throw Error(ErrorKind::internal, "TalkingHeads: a sample contradicts itself");
      call.outputs[0].name = "y";
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp talking_heads_op = {
    .kind = "TalkingHeads",
    .doc =
        "(after * softmax(before * scale * Q K^T) + bias) V, where both matrices mix the heads of each pair of tokens "
        "(talking heads).",
    .names = 1,
    .min_inputs = 3,
    .max_inputs = 6,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"num_heads", std::int64_t{1}},
                 {"head_dim", std::int64_t{0}},
                 {"scale", 1.0f},
                 {"packed", std::int64_t{0}},
                 {"has_bias", std::int64_t{0}}},
    .flops = flops,
    .plain_bytes = plain_bytes,
};

}  // namespace modelflow::ops
