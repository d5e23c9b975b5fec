// The fused op ChannelAttention: attention whose tokens are channels (cross-covariance attention).
#include "backends/ops/channel_attention.h"

#include <cmath>
#include <optional>

#include "backends/ops/attention_attrs.h"
#include "backends/ops/broadcast.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/split_heads.h"

namespace modelflow::ops {

ChannelAttentionAttrs::ChannelAttentionAttrs(const CallAttrs& attrs)
    : heads(attrs.integer("num_heads")),
      head_dim(attrs.integer("head_dim")),
      scale(attrs.number("scale")),
      epsilon(attrs.number("epsilon")),
      normalize(attrs.flag("normalize")),
      clips(attrs.flag("clips")),
      packed(attrs.flag("packed")),
      has_temperature(attrs.flag("has_temperature")) {
  if (heads < 1 || heads > kMostHeads)
    throw Error(ErrorKind::invalid_input, "there are " + std::to_string(heads) + " heads");
  if (head_dim < 0) throw Error(ErrorKind::invalid_input, "heads are of size " + std::to_string(head_dim));
  if (!std::isfinite(scale)) throw Error(ErrorKind::invalid_input, "scale is not finite");
  if (normalize && !(epsilon > 0)) throw Error(ErrorKind::invalid_input, "epsilon is not above 0");
}

namespace {

std::vector<std::string> inputs(const Call& call) {
  const ChannelAttentionAttrs attention(call);
  std::vector<std::string> names = {"q", "k", "v"};
  if (attention.packed) names = {"qkv"};
  if (attention.has_temperature) names.emplace_back("temperature");
  return names;
}

/// x_heads, [batch, heads, size, tokens].
std::string heads_text(const std::string& x, const std::string& count, const std::string& size) {
  return split_heads_text(x, count, size) + x + "_heads = Transpose <perm = [0, 2, 3, 1]> (" + x + "_split)\n";
}

/// Rows divided by their lengths, at least epsilon.
std::string unit_text(const std::string& y, const std::string& x, const char* bound, int opset) {
  const std::string length = opset < 18 ? " = ReduceL2 <axes = [-1]> (" + x + ")\n" : " = ReduceL2 (" + x + ", last)\n";
  return y + "_length" + length + y + "_least = " + bound + " (" + y + "_length, epsilon)\n" + y + " = Div (" + x +
         ", " + y + "_least)\n";
}

std::string body(const Call& call, int opset) {
  const ChannelAttentionAttrs attention(call);
  if (opset < 13)
    throw Error(ErrorKind::unsupported, "ChannelAttention needs opset 13 or later, not " + std::to_string(opset));
  const std::string size = attention.head_dim != 0 ? "head_dim" : "";
  std::string text = "{\n" + head_numbers_text(!size.empty());
  if (attention.packed) {
    text += "three = Constant <value = int64[1] {3}> ()\nall = Mul (n, three)\n" + heads_text("qkv", "all", size) +
            "parts = Concat <axis = 0> (n, n, n)\nq_heads, k_heads, v_heads = Split <axis = 1> (qkv_heads, parts)\n";
  } else {
    for (const char* x : {"q", "k", "v"}) text += heads_text(x, "n", size);
  }
  std::string q = "q_heads", k = "k_heads", scores = "scaled";
  if (attention.normalize) {
    if (opset >= 18) text += "last = Constant <value = int64[1] {-1}> ()\n";
    const char* bound = attention.clips ? "Clip" : "Max";
    text += "epsilon = Constant <value_float: float = @epsilon> ()\n" + unit_text("q_unit", q, bound, opset) +
            unit_text("k_unit", k, bound, opset);
    q = "q_unit", k = "k_unit";
  }
  text += "k_turned = Transpose <perm = [0, 1, 3, 2]> (" + k + ")\nproducts = MatMul (" + q + ", k_turned)\n" +
          "scale = Constant <value_float: float = @scale> ()\nscaled = Mul (products, scale)\n";
  if (attention.has_temperature) {
    text +=
        "by_head = Constant <value = int64[3] {-1, 1, 1}> ()\nof_heads = Reshape (temperature, by_head)\n"
        "warm = Mul (scaled, of_heads)\n";
    scores = "warm";
  }
  return text + "weights = Softmax <axis = -1> (" + scores +
         ")\ncontext = MatMul (weights, v_heads)\nturned = Transpose <perm = [0, 3, 1, 2]> (context)\n" +
         (size.empty() ? "context_shape = Shape (context)\nsize = Gather <axis = 0> (context_shape, two)\n" : "") +
         "width = Mul (" + (size.empty() ? "size" : size) +
         ", n)\n"
         "target = Concat <axis = 0> (copied, width)\ny = Reshape (turned, target)\n}";
}

std::vector<std::string> attributes(const Call& call, int) {
  const ChannelAttentionAttrs attention(call);
  std::vector<std::string> names = {"num_heads", "scale"};
  if (attention.normalize) names.emplace_back("epsilon");
  if (attention.head_dim != 0) names.emplace_back("head_dim");
  return names;
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<ChannelAttentionAttrs> attention = read_attrs<ChannelAttentionAttrs>(call, why);
  if (!attention) return why;
  HeadExtents extents;
  if (attention->head_dim) extents.size = attention->head_dim;
  for (std::size_t i = 0; i < (attention->packed ? 1u : 3u); ++i)
    if (Verdict v = join_extents(call.in(i), attention->heads * (attention->packed ? 3 : 1), extents); !v) return v;
  if (attention->has_temperature) {
    const Operand& t = call.in(attention->temperature_index());
    if (t.shape.has_rank() && (t.shape.rank() != 1 || (t.shape[0].known() && !(t.shape[0] == Dim(attention->heads)))))
      return no("is " + t.shape.str() + ", not a number for each head", t.name);
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape({extents.batch, extents.tokens, extents.size * Dim(attention->heads)});
  if (extents.size.known()) call.attrs.set("head_dim", extents.size.value());
  return yes();
}

double flops(const Call& call) {
  const double heads = static_cast<double>(ChannelAttentionAttrs(call).heads);
  const Shape& y = call.outputs.at(0).shape;
  const double width = y.has_rank() && y.back().known() ? static_cast<double>(y.back().value()) : 1;
  return 4 * y.known_elements() * width / heads;
}

/// Turning the operands, their lengths and quotients, and turning the result.
double plain_bytes(const Call& call) {
  return 4 * call.outputs.at(0).shape.known_elements() * (ChannelAttentionAttrs(call).normalize ? 18 : 10);
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    struct Sample {
      std::int64_t batch, tokens, heads, size;
      bool packed, normalize, temperature;
    };
    for (const Sample& s : std::initializer_list<Sample>{{1, 196, 4, 32, true, true, true},
                                                         {2, 784, 8, 24, true, true, true},
                                                         {1, 3136, 3, 32, true, false, false},
                                                         {1, 49, 2, 17, false, true, false},
                                                         {3, 5, 1, 3, false, false, true},
                                                         {0, 9, 2, 8, true, true, true}}) {
      Call call{"ChannelAttention", {}, {}, {}};
      call.attrs.set("num_heads", s.heads).set("packed", s.packed ? 1 : 0).set("normalize", s.normalize ? 1 : 0);
      call.attrs.set("clips", s.packed && s.normalize ? 1 : 0);
      call.attrs.set("has_temperature", s.temperature ? 1 : 0).set("epsilon", Attr(s.normalize ? 1e-12f : 0.0f));
      call.attrs.set("scale", Attr(s.normalize ? 1.0f : 1.0f / static_cast<float>(s.tokens)));
      const std::int64_t width = s.heads * s.size;
      if (s.packed) call.inputs.push_back(all.operand("qkv", {s.batch, s.tokens, 3 * width}));
      for (const char* name : {"q", "k", "v"})
        if (!s.packed) call.inputs.push_back(all.operand(name, {s.batch, s.tokens, width}));
      if (s.temperature) call.inputs.push_back(all.operand("temperature", {s.heads}, 1));
      if (!infer(call)) throw Error(ErrorKind::internal, "ChannelAttention: a sample contradicts itself");
      call.outputs[0].name = "y";
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp channel_attention_op = {
    .kind = "ChannelAttention",
    .doc =
        "softmax(scale * temperature * Q^T K) V^T per head: channels attend to channels, their lengths over all tokens "
        "taken out or not (cross-covariance attention).",
    .names = 1,
    .min_inputs = 1,
    .max_inputs = 4,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"num_heads", std::int64_t{1}},
                 {"head_dim", std::int64_t{0}},
                 {"scale", 1.0f},
                 {"epsilon", 0.0f},
                 {"normalize", std::int64_t{0}},
                 {"clips", std::int64_t{0}},
                 {"packed", std::int64_t{0}},
                 {"has_temperature", std::int64_t{0}}},
    .flops = flops,
    .plain_bytes = plain_bytes,
};

}  // namespace modelflow::ops
