// Transformers keep a few channels that are much larger than all others, and the 8 bits of a row have to reach them.
// The normalization (or product) in front gives every channel another size, the products behind take it back.
#include <algorithm>
#include <cmath>

#include "passes/equalize/balance.h"
#include "passes/equalize/equalize.h"
#include "passes/equalize/reweigh.h"
#include "passes/quantize/scale.h"

namespace modelflow::passes {
namespace {

const Tensor* float_constant(const Value* value, std::size_t rank) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  return tensor && tensor->rank() == rank && tensor->dtype() == DType::f32 && value->metadata.empty() ? tensor
                                                                                                      : nullptr;
}

/// The inputs that a factor per channel of the result goes into, and the axis of each that the channels lie on; none
/// when there is no such place.
std::vector<std::pair<std::size_t, std::size_t>> places(const Node& node) {
  const Attrs& attrs = node.attrs;
  std::vector<std::pair<std::size_t, std::size_t>> found;
  if (node.is("modelflow.LayerNorm") && attrs.integer("axis", -1) == -1) {
    found = {{1, 0}};
    if (!attrs.integer("rms")) found.emplace_back(2, 0);
  } else if (node.is("modelflow.MatMul") && attrs.text("residual", "none") == "none" &&
             attrs.number("post_shift", 0) == 0) {
    const std::string kind = attrs.text("activation", "None");
    if (kind != "None" && kind != "Relu" && kind != "LeakyRelu") return {};
    found = {{1, attrs.integer("trans_b") ? 0 : 1}};
    if (attrs.integer("has_bias")) found.emplace_back(2, 0);
  }
  for (const auto& [input, axis] : found)
    if (!float_constant(node.input(input), node.is("modelflow.MatMul") && input == 1 ? 2 : 1)) return {};
  return found;
}

bool is_reader(const Use& use) {
  return use.node->is("modelflow.MatMul") && use.index == 0 && !use.node->attrs.integer("trans_a") &&
         float_constant(use.node->input(1), 2);
}

Verdict check(const Node& node, const Context& context) {
  if (places(node).empty()) return no("has no constants that could take a factor");
  const Value& y = *node.output();
  if (y.is_graph_output() || y.uses().empty()) return no("is an output of the model", y.name());
  for (const Use& use : y.uses())
    if (!is_reader(use) || &use.node->graph() != &node.graph())
      return no("is read by what cannot take the factor back: " + use.node->label(), y.name());
  const auto known = context.plan->channels.find(y.name());
  if (known == context.plan->channels.end()) return no("nobody looked at its channels", y.name());
  for (const Use& use : y.uses()) {
    const Tensor& w = *use.node->input(1)->constant();
    if (static_cast<std::size_t>(w.dims()[use.node->attrs.integer("trans_b") ? 1 : 0]) != known->second.size())
      return no("has another number of channels than were seen", y.name());
    if (!finite(w)) return no("the weights hold what is no number", use.node->input(1)->name());
  }
  return yes();
}

Reader reader_of(const Node& product, std::size_t channels) {
  const std::span<const float> w = product.input(1)->constant()->as<float>();
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

bool equalize(Node& node, Context& context) {
  const std::vector<ChannelSize>& channels = context.plan->channels.find(node.output()->name())->second;
  const std::vector<Use> uses = node.output()->uses();
  std::vector<Reader> readers;
  for (const Use& use : uses) readers.push_back(reader_of(*use.node, channels.size()));
  const auto factors = balance(channels, readers);
  if (!factors) {
    context.miss("equalize-products", &node, "its channels are of like sizes");
    return false;
  }
  for (const auto& [input, axis] : places(node))
    set_constant(node, input, scaled_along(*node.input(input)->constant(), axis, *factors));
  const std::vector<float> back = inverse(*factors);
  for (const Use& use : uses) {
    const std::size_t axis = use.node->attrs.integer("trans_b") ? 1 : 0;
    set_constant(*use.node, 1, scaled_along(*use.node->input(1)->constant(), axis, back));
  }
  context.hit("equalize-products");
  return true;
}

int run(Graph& graph, Context& context) {
  if (!context.plan) return 0;
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->is("modelflow.LayerNorm") && !node->is("modelflow.MatMul")) continue;
    if (const Verdict verdict = check(*node, context); verdict)
      changes += equalize(*node, context);
    else
      context.miss("equalize-products", node.get(), verdict.reason);
  }
  if (changes) graph.prune();
  return changes;
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
    if (node->is("modelflow.Conv") && y->shape().has_rank() && y->shape().rank() > 2 &&
        all_read([](const Use& use) { return use.node->is("modelflow.Conv") && use.index == 0; }))
      values.push_back({y->name(), y->shape().rank() - 1});
    else if (!places(*node).empty() && all_read(is_reader))
      values.push_back({y->name(), 1});
  }
  return values;
}

std::vector<Pass> equalizing(const Options& options) {
  if (options.precision == Precision::f32 || options.precision == Precision::bf16) return {};
  return {equalize_convolutions(), equalize_products()};
}

}  // namespace modelflow::passes
