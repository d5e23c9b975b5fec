// The note in the graph of the 8-bit weights that a float constant came from.
#include "passes/graph/imported_weights.h"

#include <algorithm>
#include <sstream>

namespace modelflow::passes {
namespace {

constexpr const char *kOrigin = "modelflow.quantized", *kAxis = "modelflow.quantized_axis";

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) found.push_back(line);
  return found;
}

Tensor repeated(float value, std::int64_t times) {
  return Tensor::of<float>({times}, std::vector<float>(static_cast<std::size_t>(times), value));
}

}  // namespace

void keep_weights(Graph& graph, Value& dense, std::size_t axis, const Value& values, const Value& scales,
                  const Value* zeros) {
  std::string names = values.name() + "\n" + scales.name();
  if (zeros) names += "\n" + zeros->name();
  dense.metadata.emplace_back(kOrigin, names);
  if (scales.constant()->elements() != 1) dense.metadata.emplace_back(kAxis, std::to_string(axis));
  for (const Value* value : {&values, &scales, zeros})
    if (value) graph.pinned.insert(value->name());
}

std::optional<QuantizedWeights> imported_weights(const Value& weights, std::size_t axis) {
  for (const auto& [key, names] : weights.metadata) {
    if (key == kAxis && names != std::to_string(axis)) return {};
  }
  for (const auto& [key, names] : weights.metadata) {
    if (key != kOrigin) continue;
    std::vector<const Tensor*> origin;
    for (const std::string& name : lines(names)) {
      const Value* value = weights.graph().find(name);
      if (!value || !value->constant()) return {};
      origin.push_back(value->constant());
    }
    const auto each = [&](const Tensor& given) {
      return given.elements() != 1 ? given : repeated(given.as<float>()[0], weights.shape()[axis].value());
    };
    QuantizedWeights found{*origin.at(0), each(*origin.at(1))};
    if (origin.size() > 2) found.zero_points = each(*origin[2]);
    return found;
  }
  return {};
}

std::vector<Value*> imported(const Graph& graph) {
  std::vector<Value*> found;
  for (Value* value : graph.initializers())
    if (std::ranges::any_of(value->metadata, [](const auto& entry) { return entry.first == kOrigin; }))
      found.push_back(value);
  return found;
}

void forget_weights(Graph& graph) {
  for (Value* value : imported(graph)) {
    for (const auto& [key, names] : value->metadata)
      if (key == kOrigin)
        for (const std::string& name : lines(names)) graph.pinned.erase(name);
    std::erase_if(value->metadata, [](const auto& entry) { return entry.first == kOrigin || entry.first == kAxis; });
  }
}

}  // namespace modelflow::passes
