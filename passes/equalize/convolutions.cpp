// Conv, Relu, Conv: a Relu does not mind a positive factor per channel, so the first convolution may give every channel
// another size and the second take it back. The scale of the tensor between them then fits all of its channels.
#include <algorithm>
#include <cmath>

#include "passes/equalize/balance.h"
#include "passes/equalize/equalize.h"
#include "passes/equalize/reweigh.h"
#include "passes/graph/edits.h"
#include "passes/graph/folded.h"

namespace modelflow::passes {
namespace {

/// Constant weights that nobody quantized before.
Verdict free_weights(const Node& node) {
  const Value& weights = *weights_in(node);
  const Tensor* w = weights.constant();
  if (!w || w->dtype() != DType::f32 || w->rank() < 3) return no("the weights are no float32 constant", weights.name());
  if (!weights.metadata.empty()) return no("the weights arrived quantized", weights.name());
  return ordinary(*w) ? yes() : no("the weights are too large or too small, or no numbers", weights.name());
}

Verdict check(const Node& conv, const Context& context) {
  if (input_as(conv, "residual")) return no("a residual sum fixes the sizes of its channels");
  if (!homogeneous(conv.attrs)) return no("the activation minds a factor");
  if (Verdict v = free_weights(conv); !v) return v;
  if (const Value* bias = input_as(conv, "bias"); bias && !(bias->constant() && ordinary(*bias->constant())))
    return no("the bias is no constant of ordinary numbers", bias->name());
  const Value& y = *conv.output();
  if (y.is_graph_output() || y.uses().empty()) return no("is an output of the model", y.name());
  for (const Use& use : y.uses()) {
    if (!computes(*use.node, Family::convolution, Form::f32) || use.index != 0 || &use.node->graph() != &conv.graph())
      return no("is read by what cannot take the factor back: " + use.node->label(), y.name());
    if (Verdict v = free_weights(*use.node); !v) return v;
  }
  const std::vector<ChannelSize>* channels = channels_of(y, context);
  if (!channels) return no("nobody looked at its channels", y.name());
  if (channels->size() != static_cast<std::size_t>(weights_in(conv)->constant()->dims()[0]))
    return no("has another number of channels than were seen", y.name());
  return yes();
}

Reader reader_of(const Node& conv, std::size_t channels) {
  const Tensor& w = *weights_in(conv)->constant();
  const auto outputs = static_cast<std::size_t>(w.dims()[0]), in_group = static_cast<std::size_t>(w.dims()[1]);
  const auto groups = static_cast<std::size_t>(conv.attrs.integer("group", 1));
  Reader reader{.outputs = outputs, .depthwise = in_group == 1 && outputs == channels, .size = {}, .square = {}};
  const std::size_t columns = reader.depthwise ? 1 : channels, taps = w.as<float>().size() / (outputs * in_group);
  reader.size.assign(outputs * columns, 0);
  reader.square.assign(outputs * columns, 0);
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t i = 0; i < in_group; ++i) {
      const std::size_t at = reader.depthwise ? o : o * channels + o / (outputs / groups) * in_group + i;
      for (const float x : w.as<float>().subspan((o * in_group + i) * taps, taps)) {
        reader.size[at] = std::max(reader.size[at], std::abs(x));
        reader.square[at] += x * x;
      }
    }
  return reader;
}

void enlarge(Node& conv, std::span<const float> factors) {
  for (const auto place : {weights_place(conv), place_of(conv, "bias")})
    if (place) set_constant(conv, *place, scaled_along(*conv.input(*place)->constant(), 0, factors));
}

void take_back(Node& conv, std::span<const float> factors) {
  const auto groups = static_cast<std::size_t>(conv.attrs.integer("group", 1));
  set_constant(conv, *weights_place(conv), scaled_along(*weights_in(conv)->constant(), 1, factors, groups));
}

int run(Graph& graph, Context& context) {
  return reweigh(graph, context,
                 {.rule = "equalize-convolutions",
                  .begins = [](const Node& node) { return computes(node, Family::convolution, Form::f32); },
                  .check = check,
                  .reader_of = reader_of,
                  .enlarge = enlarge,
                  .take_back = take_back});
}

}  // namespace

Pass equalize_convolutions() {
  return {.name = "equalize-convolutions",
          .doc = "Conv, Relu, Conv: channels of unlike sizes between them are brought to like ones, for int8",
          .run = run};
}

}  // namespace modelflow::passes
