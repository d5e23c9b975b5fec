// ONNX text of layer and RMS normalization: as the standard op where the opset has it, else decomposed.
#include "backends/ops/layer_norm_text.h"

#include "backends/ops/activation_body.h"
#include "modelflow/error.h"

namespace modelflow::ops {
namespace {

bool has_op(bool rms, int opset) { return opset >= (rms ? 23 : 17); }

/// "name = ReduceMean of x over the trailing axes", which are an attribute before opset 18.
std::string mean_text(const std::string& name, const std::string& x, std::size_t axes, int opset) {
  std::string list;
  for (std::size_t i = axes; i > 0; --i) list += (list.empty() ? "-" : ", -") + std::to_string(i);
  if (opset < 18) return name + " = ReduceMean <axes = [" + list + "]> (" + x + ")\n";
  return name + "_axes = Constant <value = int64[" + std::to_string(axes) + "] {" + list + "}> ()\n" + name +
         " = ReduceMean (" + x + ", " + name + "_axes)\n";
}

/// Written as ONNX Runtime's own fusions expect it, so that the body costs nothing without our plugin.
std::string decomposed(bool rms, std::size_t axes, const std::string& t, float epsilon, int opset,
                       const std::string& result) {
  std::string text, deviation = t;
  if (!rms) {
    text += mean_text("mean", t, axes, opset) + "deviation = Sub (" + t + ", mean)\n";
    deviation = "deviation";
  }
  text += constant_text("two", 2) + "square = Pow (" + deviation + ", two)\n";
  text += mean_text("variance", "square", axes, opset);
  text += opset < 12 ? constant_text("small", epsilon) : "small = Constant <value_float: float = @epsilon> ()\n";
  text += "shifted = Add (variance, small)\nroot = Sqrt (shifted)\nnormal = Div (" + deviation + ", root)\n";
  if (rms) return text + result + " = Mul (normal, scale)\n";
  return text + "scaled = Mul (normal, scale)\n" + result + " = Add (scaled, bias)\n";
}

}  // namespace

std::string layer_norm_text(bool rms, std::size_t axes, const std::string& x, float epsilon, int opset,
                            const std::string& result) {
  if (opset < 11)
    throw Error(ErrorKind::unsupported, "LayerNorm needs the axes of opset 11, not " + std::to_string(opset));
  if (!has_op(rms, opset)) return decomposed(rms, axes, x, epsilon, opset, result);
  const std::string op = rms ? " = RMSNormalization" : " = LayerNormalization";
  return result + op + " <axis: int = @axis, epsilon: float = @epsilon> (" + x + ", scale" +
         (rms ? ")\n" : ", bias)\n");
}

std::vector<std::string> layer_norm_attributes(bool rms, int opset) {
  if (has_op(rms, opset)) return {"axis", "epsilon"};
  if (opset < 12) return {};
  return {"epsilon"};
}

}  // namespace modelflow::ops
