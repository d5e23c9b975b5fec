// Where 8-bit numbers begin and end, one pass over the tensor rounds or widens them; with a Transpose beside it the
// same pass moves the channels.
#include <algorithm>
#include <cmath>
#include <optional>

#include "passes/graph/edits.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

bool read_by(const Value& value, const char* op) {
  return std::any_of(value.uses().begin(), value.uses().end(), [&](const Use& use) { return use.node->is(op); });
}

bool reads_from(const Node& node, const char* op) {
  return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* v) { return made_by(v, op); });
}

/// One scale and one zero point of 8 bits, as attributes.
std::optional<Attrs> plain(const Node& node) {
  if (!node.input(2) || node.attrs.integer("block_size") || node.attrs.integer("output_dtype")) return {};
  const Tensor *scale = node.input(1)->constant(), *zero = node.input(2)->constant();
  if (!scale || !zero || scale->dtype() != DType::f32 || zero->dtype() != DType::u8) return {};
  if (scale->elements() != 1 || zero->elements() != 1) return {};
  if (!(scale->as<float>()[0] > 0) || !std::isfinite(scale->as<float>()[0])) return {};  // no kernel takes it
  Attrs attrs{{"scale", scale->as<float>()[0]}};
  attrs.set("zero_point", Attr(std::int64_t{zero->as<std::uint8_t>()[0]}));
  return attrs;
}

/// Runtimes look for an op between DequantizeLinear and QuantizeLinear: what may be part of that stays. An op of ours
/// that is kept in float32 is no part of it; ONNX Runtime looks at the op's type alone and would make a node of our
/// domain.
bool begins(const Node& quantize) {
  const Value &x = *quantize.input(0), &y = *quantize.output();
  const Node* op = x.producer();
  return !read_by(y, "DequantizeLinear") && !(op && op->domain().empty() && reads_from(*op, "DequantizeLinear"));
}

bool ends(const Node& dequantize) {
  if (dequantize.input(0)->constant() || made_by(dequantize.input(0), "QuantizeLinear")) return false;
  const auto& uses = dequantize.output()->uses();
  return std::none_of(uses.begin(), uses.end(), [](const Use& use) {
    const Node& reader = *use.node;
    if (!reader.domain().empty()) return false;
    const bool product = reader.is("MatMul") || reader.is("Gemm") || reader.is("Conv");
    const auto& results = reader.outputs();
    return product || reader.is("QuantizeLinear") || std::any_of(results.begin(), results.end(), [](const Value* y) {
             return y && read_by(*y, "QuantizeLinear");
           });
  });
}

bool turns(const Value* value, const Ints& perm) {
  return made_by(value, "Transpose") && value->producer()->attrs.ints("perm") == perm;
}

/// How the node is labelled, so that a Transpose beside it finds the order that it leads from or to.
std::string layout_of(const Node& node) {
  const Shape& shape = node.output()->shape();
  if (!shape.has_rank() || shape.rank() < 3) return "NCHW";
  const Node* reader = only_reader(*node.output());
  const bool back = reader && reader->output() && turns(reader->output(), to_first(shape.rank()));
  return back || turns(node.input(0), to_last(shape.rank())) ? "NHWC" : "NCHW";
}

/// What it reads: floats of 16 bits where only a Cast of a GPU's model stands in front.
Value& operand_of(const Node& border, const Context& context) {
  const DType half = half_type(context.options);
  Value& x = *border.input(0);
  const bool widened = half != DType::undefined && made_by(&x, "Cast") && x.dtype() == DType::f32 &&
                       x.producer()->input(0)->dtype() == half;
  return widened ? *x.producer()->input(0) : x;
}

int run(Graph& graph, Context& context) {
  if (context.model.opset() < 13) return 0;  // see raise-opset, which says why
  std::vector<Node*> borders;
  for (const auto& node : graph.nodes())
    if ((node->is("QuantizeLinear") && node->output() && begins(*node)) ||
        (node->is("DequantizeLinear") && node->output() && ends(*node)))
      borders.push_back(node.get());
  int changes = 0;
  for (Node* node : borders) {
    std::optional<Attrs> attrs = plain(*node);
    if (!attrs) continue;
    attrs->set("x_layout", layout_of(*node)).set("y_layout", layout_of(*node));
    const char* op = node->is("QuantizeLinear") ? "modelflow.Quantize" : "modelflow.Dequantize";
    Node* made = make_fused(graph, context, "quantized-borders", op, {&operand_of(*node, context)}, *attrs, *node);
    if (!made) continue;
    made->name = node->name;
    made->doc = node->doc;
    graph.replace(*node->output(), *made->output());
    graph.erase(*node);
    context.hit("quantized-borders");
    ++changes;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass quantized_borders() {
  return {.name = "quantized-borders",
          .doc =
              "QuantizeLinear and DequantizeLinear where 8-bit numbers begin and end -> modelflow.Quantize and "
              "modelflow.Dequantize",
          .run = run};
}

}  // namespace modelflow::passes
