// Nodes in lower precision compared with their like in float32.
#include "src/precision/op_errors.h"

#include <algorithm>
#include <optional>

#include "src/core/half.h"
#include "src/precision/intermediates.h"
#include "src/precision/output_errors.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

using Names = std::vector<std::string>;

/// One op in two models.
struct Pair {
  const Node *reference, *quantized;
};

std::map<std::string, Pair> pairs_of(const Graph& reference, const Graph& quantized) {
  std::map<std::string, const Node*> nodes;
  for (const auto& node : reference.nodes())  // the first output of an RNN may be absent
    if (node->output() && node->output()->dtype() == DType::f32) nodes.emplace(node->name, node.get());
  std::map<std::string, Pair> pairs;
  for (const auto& node : quantized.nodes()) {
    const auto found = nodes.find(node->name);
    if (found != nodes.end() && node->output() && node->op() != found->second->op())
      pairs.emplace(found->second->output()->name(), Pair{found->second, node.get()});
  }
  return pairs;
}

std::map<std::string, Tensor> results(const Sessions& sessions, const Model& model, const Names& values,
                                      const Feeds& sample, const SessionOptions& options) {
  const auto session = open_session(sessions, with_outputs(model, values), options);
  const std::vector<Tensor> outputs = session->run(sample);
  std::map<std::string, Tensor> by_name;
  std::size_t index = 0;
  for (const auto& [name, type] : session->outputs()) by_name.emplace(name, outputs.at(index++));
  return by_name;
}

/// What the output of a node stands for, in float32: one of 8 bits, or a float of 16.
Tensor dequantized(const Tensor& y, const Node& node) {
  if (y.dtype() != DType::u8) return in_float32(y);
  const auto scale = static_cast<float>(node.attrs.number("y_scale", 1));
  const auto zero_point = static_cast<float>(node.attrs.integer("y_zero_point"));
  return Tensor::make(DType::f32, y.dims(), [&](std::byte* to) {
    std::ranges::transform(y.as<std::uint8_t>(), reinterpret_cast<float*>(to),
                           [&](std::uint8_t v) { return (static_cast<float>(v) - zero_point) * scale; });
  });
}

}  // namespace

std::map<std::string, double> op_errors(const Sessions& sessions, const EmittedForm& reference,
                                        const EmittedForm& quantized, const Feeds& sample,
                                        const SessionOptions& session) {
  const std::map<std::string, Pair> pairs = pairs_of(reference.fused.graph(), quantized.fused.graph());
  Names values;
  for (const auto& [value, pair] : pairs) values.push_back(value);
  std::map<std::string, double> errors;
  for (const Names& group : groups_in_memory(sessions, reference.runnable, values, sample, session)) {
    Names theirs;
    for (const std::string& value : group) theirs.push_back(pairs.at(value).quantized->output()->name());
    const auto want = results(sessions, reference.runnable, group, sample, session);
    const auto got = results(sessions, quantized.runnable, theirs, sample, session);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Pair& pair = pairs.at(group[i]);
      ErrorMeter meter(group[i]);
      meter.add(want.at(group[i]), dequantized(got.at(theirs[i]), *pair.quantized));
      if (const auto sqnr = meter.error().sqnr) errors.emplace(pair.reference->name, *sqnr);
    }
  }
  return errors;
}

}  // namespace modelflow
