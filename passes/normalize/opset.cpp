// Scales per channel (DequantizeLinear with an axis) and bfloat16 came with opset 13.
#include <algorithm>

#include "modelflow/compose.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

constexpr std::int64_t kTo = 13;

bool arrives_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) {
    return node->is("DequantizeLinear") || node->is("QLinearConv") || node->is("QLinearMatMul");
  });
}

int run(Graph& graph, Context& context) {
  const std::int64_t opset = context.model.opset();
  if (opset >= kTo) return 0;
  const Precision precision = context.options.precision;
  const bool bf16 = precision == Precision::bf16 || precision == Precision::bf16_weights;
  const bool any_opset = precision == Precision::f32 || precision == Precision::f16;
  if (any_opset && !arrives_quantized(graph)) return 0;
  if (const Verdict raised = modelflow::raise_opset(context.model, kTo); !raised) {
    context.note(std::string(bf16 ? "bfloat16 needs" : "8 bits need") +
                 " opset 13, and this model cannot be raised to it: " + raised.reason);
    return 0;
  }
  context.note("opset raised from " + std::to_string(opset) +
               " to 13: " + (bf16 ? "casts to bfloat16 need it" : "scales per channel need it"));
  return 1;
}

}  // namespace

Pass raise_opset() {
  return {.name = "raise-opset",
          .doc =
              "Opsets from 7 on to 13, for lower precision and models that arrive quantized: scales per channel came "
              "with it",
          .run = run,
          .whole_model = true};
}

}  // namespace modelflow::passes
