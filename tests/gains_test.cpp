// Which ops gain by lower precision, told by the times of nodes and what conversions between them take.
#include "src/precision/gains.h"

#include <gtest/gtest.h>

namespace modelflow {
namespace {

constexpr Dims::value_type kElements = 1000;
using Names = std::set<std::string>;

/// A chain of nodes a, b, c, ... between float32 borders. The nodes named in `narrow` compute in 8 bits.
Model chain(const std::vector<std::string>& names, const Names& narrow) {
  Model model;
  model.opsets[""] = 17;
  Graph& graph = model.graph();
  const auto typed = [](Node& node, DType type) {
    node.output()->type = Type::tensor(type, Shape({kElements}));
    return node.output();
  };
  Value* at = &graph.add_input("x", Type::tensor(DType::f32, Shape({kElements})));
  for (const std::string& name : names) {
    const DType wanted = narrow.contains(name) ? DType::u8 : DType::f32;
    if (at->dtype() != wanted)
      at = typed(
          graph.add(wanted == DType::u8 ? "QuantizeLinear" : "DequantizeLinear", {at}, {.name = "convert " + name}),
          wanted);
    at = typed(graph.add(wanted == DType::u8 ? "modelflow.QConv" : "modelflow.Conv", {at}, {.name = name}), wanted);
  }
  if (at->dtype() == DType::u8) at = typed(graph.add("DequantizeLinear", {at}, {.name = "convert back"}), DType::f32);
  graph.add_output(*at);
  return model;
}

/// In microseconds; what converts takes `conversion`.
NodeTimes times(const Model& model, const std::map<std::string, double>& known, double conversion) {
  NodeTimes all;
  for (const auto& node : model.graph().nodes()) {
    const bool converts = node->name.starts_with("convert");
    all[node->name] = {.name = node->name,
                       .op = converts ? "Quantize" : node->op(),
                       .seconds = 1e-6 * (converts ? conversion : known.at(node->name)),
                       .calls = 1,
                       .inputs = {{kElements}},
                       .outputs = {{kElements}}};
  }
  return all;
}

Names stay(const std::map<std::string, double>& full, const std::map<std::string, double>& lowered, double conversion) {
  std::vector<std::string> names;
  Names narrow;
  for (const auto& [name, seconds] : full) names.push_back(name);
  for (const auto& [name, seconds] : lowered) narrow.insert(name);
  const Model a = chain(names, {}), b = chain(names, narrow);
  std::map<std::string, double> both = full;
  for (const auto& [name, seconds] : lowered) both[name] = seconds;
  const NodeTimes in_full = times(a, full, conversion), in_lowered = times(b, both, conversion);
  Names left = without_gain({a, in_full}, {b, in_lowered});
  std::erase_if(left, [&](const std::string& name) { return !narrow.contains(name); });
  return left;
}

TEST(Gains, WhatIsFasterGoes) { EXPECT_EQ(stay({{"a", 10}, {"b", 10}}, {{"a", 3}, {"b", 4}}, 1), Names{}); }

TEST(Gains, ASlowOpAtTheBorderStays) {
  EXPECT_EQ(stay({{"a", 10}, {"b", 10}}, {{"a", 12}, {"b", 3}}, 1), Names{"a"});
  EXPECT_EQ(stay({{"a", 10}, {"b", 10}}, {{"a", 3}, {"b", 12}}, 1), Names{"b"});
}

TEST(Gains, ASlowOpInTheMiddleStaysOnlyWhereTwoConversionsAreCheaper) {
  const std::map<std::string, double> full = {{"a", 10}, {"b", 10}, {"c", 10}},
                                      lowered = {{"a", 3}, {"b", 12}, {"c", 3}};
  EXPECT_EQ(stay(full, lowered, 0.5), Names{"b"});
  EXPECT_EQ(stay(full, lowered, 2), Names{});
}

TEST(Gains, WhatDoesNotPayForItsConversionsStays) {
  EXPECT_EQ(stay({{"a", 10}, {"b", 10}}, {{"b", 8}}, 0.5), Names{});
  EXPECT_EQ(stay({{"a", 10}, {"b", 10}}, {{"b", 8}}, 3), Names{"b"});
  EXPECT_EQ(stay({{"a", 10}, {"b", 10}, {"c", 10}}, {{"b", 7}, {"c", 7}}, 2), Names{}) << "together they pay";
}

}  // namespace
}  // namespace modelflow
