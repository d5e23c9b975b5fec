// ONNX text of every activation, as far as possible in the spelling that ONNX Runtime itself fuses.
#include "backends/ops/activation_body.h"

#include <cmath>
#include <cstdio>

#include "backends/call_attrs.h"

namespace modelflow::ops {
namespace {

// Lines of ONNX text with $x, $y replaced and $y_name made unique by the name of the result.
std::string expand(std::string_view text, std::string_view x, std::string_view y) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size()) {
      out += text[++i] == 'x' ? x : y;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string clip(const CallAttrs& attrs, int opset) {
  if (opset < 11) return "$y = Clip <min: float = @alpha, max: float = @beta> ($x)\n";
  const float low = attrs.number("alpha"), high = attrs.number("beta");
  // Constant takes value_float (and with it a reference) from opset 12 on.
  if (opset < 12)
    return constant_text("$y_min", low) + constant_text("$y_max", high) + "$y = Clip ($x, $y_min, $y_max)\n";
  return "$y_min = Constant <value_float: float = @alpha> ()\n$y_max = Constant <value_float: float = @beta> ()\n"
         "$y = Clip ($x, $y_min, $y_max)\n";
}

std::string bounded_leaky_relu(const CallAttrs& attrs, int opset) {
  const std::string bound = opset < 12 ? constant_text("$y_bound", attrs.number("beta"))
                                       : "$y_bound = Constant <value_float: float = @beta> ()\n";
  return bound + "$y_leaky = LeakyRelu <alpha: float = @alpha> ($x)\n$y = Max ($y_leaky, $y_bound)\n";
}

std::string quick_gelu(const CallAttrs& attrs, int opset) {
  const std::string factor = opset < 12 ? constant_text("$y_alpha", attrs.number("alpha"))
                                        : "$y_alpha = Constant <value_float: float = @alpha> ()\n";
  return factor + "$y_scaled = Mul ($x, $y_alpha)\n$y_gate = Sigmoid ($y_scaled)\n$y = Mul ($x, $y_gate)\n";
}

// Written as ONNX Runtime's own GELU fusion expects it, so that the body costs nothing without our plugin.
std::string gelu(int opset) {
  if (opset >= 20) return "$y = Gelu ($x)\n";
  if (opset < 9) throw Error(ErrorKind::unsupported, "Gelu needs Erf, which opset " + std::to_string(opset) + " lacks");
  return constant_text("$y_sqrt2", std::sqrt(2.0f)) + constant_text("$y_one", 1) + constant_text("$y_half", 0.5f) +
         "$y_div = Div ($x, $y_sqrt2)\n$y_erf = Erf ($y_div)\n$y_sum = Add ($y_erf, $y_one)\n"
         "$y_mul = Mul ($x, $y_sum)\n$y = Mul ($y_mul, $y_half)\n";
}

std::string gelu_tanh(int opset) {
  if (opset >= 20) return "$y = Gelu <approximate = \"tanh\"> ($x)\n";
  return constant_text("$y_three", 3) + constant_text("$y_cubic", 0.044715f) +
         constant_text("$y_factor", 0.7978845608028654f) + constant_text("$y_one", 1) + constant_text("$y_half", 0.5f) +
         "$y_pow = Pow ($x, $y_three)\n$y_term = Mul ($y_pow, $y_cubic)\n$y_inner = Add ($x, $y_term)\n"
         "$y_scaled = Mul ($y_inner, $y_factor)\n$y_tanh = Tanh ($y_scaled)\n$y_sum = Add ($y_tanh, $y_one)\n"
         "$y_mul = Mul ($x, $y_sum)\n$y = Mul ($y_mul, $y_half)\n";
}

std::string body(const std::string& activation, const CallAttrs& attrs, int opset) {
  if (activation == "None") return "$y = Identity ($x)\n";
  if (activation == "Relu" || activation == "Sigmoid" || activation == "Tanh") return "$y = " + activation + " ($x)\n";
  if (activation == "SquaredRelu") return "$y_relu = Relu ($x)\n$y = Mul ($y_relu, $y_relu)\n";
  if (activation == "Clip") return clip(attrs, opset);
  if (activation == "LeakyRelu") return "$y = LeakyRelu <alpha: float = @alpha> ($x)\n";
  if (activation == "BoundedLeakyRelu") return bounded_leaky_relu(attrs, opset);
  if (activation == "HardSigmoid") return "$y = HardSigmoid <alpha: float = @alpha, beta: float = @beta> ($x)\n";
  if (activation == "HardSwish") {
    return "$y_gate = HardSigmoid <alpha: float = @alpha, beta: float = @beta> ($x)\n$y = Mul ($x, $y_gate)\n";
  }
  if (activation == "SiLU") return "$y_gate = Sigmoid ($x)\n$y = Mul ($x, $y_gate)\n";
  if (activation == "QuickGelu") return quick_gelu(attrs, opset);
  if (activation == "Mish") return "$y_soft = Softplus ($x)\n$y_tanh = Tanh ($y_soft)\n$y = Mul ($x, $y_tanh)\n";
  if (activation == "Elu") return "$y = Elu <alpha: float = @alpha> ($x)\n";
  if (activation == "Softplus") return "$y = Softplus ($x)\n";
  if (activation == "PRelu") return "$y = PRelu ($x, slopes)\n";
  if (activation == "Gelu") return gelu(opset);
  if (activation == "GeluTanh") return gelu_tanh(opset);
  throw Error(ErrorKind::invalid_input, "unknown activation '" + activation + "'");
}

}  // namespace

std::string constant_text(std::string_view name, float value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(value));
  return std::string(name) + " = Constant <value = float {" + digits + "}> ()\n";
}

Attrs with_activation(Attrs attrs) {
  const Attrs none = {
      {"activation", std::string("None")}, {"alpha", 0.0f}, {"beta", 0.0f}, {"post_scale", 1.0f}, {"post_shift", 0.0f}};
  for (const auto& [name, value] : none)
    if (!attrs.has(name)) attrs.set(name, value);
  return attrs;
}

std::string activation_body(const CallAttrs& attrs, int opset, std::string_view x, std::string_view y) {
  const float scale = attrs.number("post_scale"), shift = attrs.number("post_shift");
  const std::string text = body(attrs.text("activation"), attrs, opset);
  if (scale == 1 && shift == 0) return expand(text, x, y);
  const std::string plain = std::string(y) + "_act";
  const auto number = [opset](const char* name, const char* attribute, float value) {
    if (opset < 12) return constant_text(name, value);
    return std::string(name) + " = Constant <value_float: float = @" + attribute + "> ()\n";
  };
  return expand(text, x, plain) + expand(number("$y_scale", "post_scale", scale), x, y) +
         expand(number("$y_shift", "post_shift", shift), x, y) +
         expand("$y_scaled = Mul ($x, $y_scale)\n$y = Add ($y_scaled, $y_shift)\n", plain, y);
}

std::vector<std::string> activation_attributes(const CallAttrs& attrs, int opset) {
  const std::string text = body(attrs.text("activation"), attrs, opset);
  std::vector<std::string> names;
  for (const char* name : {"alpha", "beta"}) {
    if (text.find(std::string("@") + name) != std::string::npos) names.emplace_back(name);
  }
  const bool affine = attrs.number("post_scale") != 1 || attrs.number("post_shift") != 0;
  if (affine && opset >= 12) names.insert(names.end(), {"post_scale", "post_shift"});
  return names;
}

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names = {
      "None",      "Relu", "SquaredRelu", "Clip",        "LeakyRelu", "BoundedLeakyRelu",
      "Sigmoid",   "SiLU", "HardSwish",   "HardSigmoid", "Gelu",      "GeluTanh",
      "QuickGelu", "Mish", "Tanh",        "Elu",         "Softplus"};
  return names;
}

Verdict check_activation(const CallAttrs& attrs) {
  const std::string activation = attrs.text("activation");
  if (activation == "None" && (attrs.number("post_scale") != 1 || attrs.number("post_shift") != 0))
    return no("post_scale and post_shift stand behind an activation only");
  for (const std::string& known : activation_names()) {
    if (known == activation) return yes();
  }
  return no("unknown activation '" + activation + "'");
}

Attrs activation_sample(std::string_view activation) {
  Attrs attrs = with_activation({{"activation", std::string(activation)}});
  if (activation == "Clip") attrs.set("beta", 6.0f);
  if (activation == "LeakyRelu") attrs.set("alpha", 0.1f);
  if (activation == "Elu") attrs.set("alpha", 1.5f);
  if (activation == "BoundedLeakyRelu") attrs.set("alpha", 0.2f).set("beta", -0.4f);
  if (activation == "HardSwish" || activation == "HardSigmoid") attrs.set("alpha", 1.0f / 6).set("beta", 0.5f);
  if (activation == "QuickGelu") attrs.set("alpha", 1.702f);
  return attrs;
}

}  // namespace modelflow::ops
