// Weights whose channels got other sizes, and what equalizing convolutions and products has in common.
#include "passes/equalize/reweigh.h"

#include <algorithm>
#include <string>

namespace modelflow::passes {
namespace {

std::vector<float> inverse(std::span<const float> factors) {
  std::vector<float> result;
  for (const float f : factors) result.push_back(1 / f);
  return result;
}

Verdict reweigh(Node& node, Context& context, const Reweighing& how) {
  if (Verdict v = how.check(node, context); !v) return v;
  const std::vector<ChannelSize>& channels = *channels_of(*node.output(), context);
  const std::vector<Use> uses = node.output()->uses();
  std::vector<Reader> readers;
  for (const Use& use : uses) readers.push_back(how.reader_of(*use.node, channels.size()));
  const auto factors = balance(channels, readers);
  if (!factors) return no("its channels are of like sizes");
  how.enlarge(node, *factors);
  const std::vector<float> back = inverse(*factors);
  for (const Use& use : uses) how.take_back(*use.node, back);
  return yes();
}

}  // namespace

int reweigh(Graph& graph, Context& context, const Reweighing& how) {
  if (!context.plan) return 0;
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    if (!how.begins(*node)) continue;
    const Verdict verdict = reweigh(*node, context, how);
    if (verdict)
      context.hit(how.rule);
    else
      context.miss(how.rule, node.get(), verdict.reason);
    changes += verdict.ok;
  }
  if (changes) graph.prune();
  return changes;
}

const std::vector<ChannelSize>* channels_of(const Value& value, const Context& context) {
  const auto known = context.plan->channels.find(value.name());
  return known == context.plan->channels.end() ? nullptr : &known->second;
}

bool homogeneous(const Attrs& attrs) {
  const std::string kind = attrs.text("activation");
  return (kind == "None" || kind == "Relu" || kind == "LeakyRelu") && attrs.number("post_shift") == 0;
}

Tensor scaled_along(const Tensor& tensor, std::size_t axis, std::span<const float> factors, std::size_t groups) {
  const Dims& dims = tensor.dims();
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<std::size_t>(dims[i]);
  const auto extent = static_cast<std::size_t>(dims[axis]);
  const std::size_t rows = static_cast<std::size_t>(dims[0]), in_group = std::max<std::size_t>(rows / groups, 1);
  const std::span<const float> from = tensor.as<float>();
  return Tensor::make(DType::f32, dims, [&](std::byte* out) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t at = i / inner % extent;
      const std::size_t group = groups > 1 ? i / (inner * extent) / in_group : 0;
      reinterpret_cast<float*>(out)[i] = from[i] * factors[group * extent + at];
    }
  });
}

}  // namespace modelflow::passes
