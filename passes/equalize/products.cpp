// Transformers keep a few channels that are much larger than all others, and the 8 bits of a row have to reach them.
// The normalization (or product) in front gives every channel another size, the products behind take it back.
#include <algorithm>
#include <cmath>

#include "passes/equalize/balance.h"
#include "passes/equalize/equalize.h"
#include "passes/equalize/reweigh.h"
#include "passes/graph/edits.h"
#include "passes/graph/folded.h"

namespace modelflow::passes {
namespace {

const Tensor* float_constant(const Value* value, std::size_t rank) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  return tensor && tensor->rank() == rank && tensor->dtype() == DType::f32 && value->metadata.empty() ? tensor
                                                                                                      : nullptr;
}

bool is_product(const Node& node) { return computes(node, Family::product, Form::f32); }
bool is_conv(const Node& node) { return computes(node, Family::convolution, Form::f32); }

/// The inputs that a factor per channel of the result goes into, and the axis of each that the channels lie on; none
/// when there is no such place.
std::vector<std::pair<std::size_t, std::size_t>> places(const Node& node) {
  const Attrs& attrs = node.attrs;
  std::vector<std::pair<std::size_t, std::size_t>> found;
  if (computes(node, Family::layer_norm) && attrs.integer("axis") == -1) {
    found = {{*place_of(node, "scale"), 0}};
  } else if (is_product(node) && !input_as(node, "residual") && homogeneous(attrs)) {
    found = {{*weights_place(node), attrs.integer("trans_b") ? 0 : 1}};
  } else {
    return {};
  }
  if (const auto bias = place_of(node, "bias")) found.emplace_back(*bias, 0);
  for (const auto& [input, axis] : found)
    if (!float_constant(node.input(input), input == weights_place(node) ? 2 : 1)) return {};
  return found;
}

bool is_reader(const Use& use) {
  return is_product(*use.node) && use.index == 0 && !use.node->attrs.integer("trans_a") &&
         float_constant(weights_in(*use.node), 2);
}

Verdict check(const Node& node, const Context& context) {
  if (places(node).empty()) return no("has no constants that could take a factor");
  for (const auto& [input, axis] : places(node))
    if (!ordinary(*node.input(input)->constant()))
      return no("holds numbers that are too large or too small", node.input(input)->name());
  const Value& y = *node.output();
  if (y.is_graph_output() || y.uses().empty()) return no("is an output of the model", y.name());
  for (const Use& use : y.uses())
    if (!is_reader(use) || &use.node->graph() != &node.graph())
      return no("is read by what cannot take the factor back: " + use.node->label(), y.name());
  const std::vector<ChannelSize>* channels = channels_of(y, context);
  if (!channels) return no("nobody looked at its channels", y.name());
  for (const Use& use : y.uses()) {
    const Tensor& w = *weights_in(*use.node)->constant();
    if (static_cast<std::size_t>(w.dims()[use.node->attrs.integer("trans_b") ? 1 : 0]) != channels->size())
      return no("has another number of channels than were seen", y.name());
    if (!ordinary(w)) return no("the weights are too large or too small, or no numbers", weights_in(*use.node)->name());
  }
  return yes();
}

Reader reader_of(const Node& product, std::size_t channels) {
  const std::span<const float> w = weights_in(product)->constant()->as<float>();
  const bool swapped = product.attrs.integer("trans_b") != 0;
  const std::size_t outputs = w.size() / channels;
  Reader reader{.outputs = outputs, .depthwise = false, .size = {}, .square = {}};
  reader.size.reserve(w.size());
  reader.square.reserve(w.size());
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t c = 0; c < channels; ++c) {
      const float x = w[swapped ? o * channels + c : c * outputs + o];
      reader.size.push_back(std::abs(x));
      reader.square.push_back(x * x);
    }
  return reader;
}

void enlarge(Node& node, std::span<const float> factors) {
  for (const auto& [input, axis] : places(node))
    set_constant(node, input, scaled_along(*node.input(input)->constant(), axis, factors));
}

void take_back(Node& product, std::span<const float> factors) {
  const std::size_t axis = product.attrs.integer("trans_b") ? 1 : 0;
  set_constant(product, *weights_place(product), scaled_along(*weights_in(product)->constant(), axis, factors));
}

int run(Graph& graph, Context& context) {
  return reweigh(graph, context,
                 {.rule = "equalize-products",
                  .begins = [](const Node& node) { return computes(node, Family::layer_norm) || is_product(node); },
                  .check = check,
                  .reader_of = reader_of,
                  .enlarge = enlarge,
                  .take_back = take_back});
}

}  // namespace

Pass equalize_products() {
  return {.name = "equalize-products",
          .doc = "A normalization or product and the products behind it: outlying channels are evened out, for int8",
          .run = run};
}

std::vector<ChannelsOf> channels_to_observe(const Graph& graph) {
  std::vector<ChannelsOf> values;
  for (const auto& node : graph.nodes()) {
    const Value* y = node->output();
    if (!y || y->is_graph_output() || y->dtype() != DType::f32) continue;
    const auto all_read = [&](auto reads) { return std::all_of(y->uses().begin(), y->uses().end(), reads); };
    if (is_conv(*node) && y->shape().has_rank() && y->shape().rank() > 2 &&
        all_read([](const Use& use) { return is_conv(*use.node) && use.index == 0; }))
      values.push_back({y->name(), y->shape().rank() - 1});
    else if (!places(*node).empty() && all_read(is_reader))
      values.push_back({y->name(), 1});
  }
  return values;
}

}  // namespace modelflow::passes
