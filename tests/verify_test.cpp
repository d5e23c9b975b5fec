// Made-up data, comparison of results and the bisection.
#include <gtest/gtest.h>

#include <cmath>

#include "src/verify/bisect.h"
#include "src/verify/compare.h"
#include "src/verify/feeds.h"

namespace modelflow {
namespace {

const float nan = std::nanf("");

OutputDiff diff(std::initializer_list<float> a, std::initializer_list<float> b, double tolerance = 1e-4) {
  const auto n = static_cast<std::int64_t>(a.size());
  return difference("y", Tensor::of<float>({n}, a), Tensor::of<float>({n}, b), tolerance);
}

TEST(Difference, RelativeToTheLargestValue) {
  const OutputDiff d = diff({100, 0}, {100, 0.001F});
  EXPECT_NEAR(d.max_rel, 1e-5, 1e-8);
  EXPECT_TRUE(d.ok);
  EXPECT_FALSE(diff({1, 0}, {1, 0.001F}).ok);
}

TEST(Difference, NanAndInfinityOnlyEqualThemselves) {
  EXPECT_TRUE(diff({nan, INFINITY, 1}, {nan, INFINITY, 1}).ok);
  EXPECT_FALSE(diff({nan, 1}, {0, 1}).ok);
  EXPECT_FALSE(diff({1, 1}, {nan, 1}).ok);
  EXPECT_FALSE(diff({INFINITY, 1}, {-INFINITY, 1}).ok);
}

TEST(Difference, AllZeroAllowsDust) {
  EXPECT_TRUE(diff({0, 0}, {1e-8F, 0}).ok);
  EXPECT_FALSE(diff({0, 0}, {1e-3F, 0}).ok);
}

TEST(Difference, ShapesAndTypesMustAgree) {
  const Tensor a = Tensor::of<float>({2}, {1, 2});
  EXPECT_FALSE(difference("y", a, a.reshaped({1, 2}), 1).equal_type);
  EXPECT_FALSE(difference("y", a, Tensor::of<std::int32_t>({2}, {1, 2}), 1).ok);
}

TEST(Difference, IntegersAreExactUpToATie) {
  EXPECT_FALSE(difference("y", Tensor::of<std::int64_t>({2}, {1, 2}), Tensor::of<std::int64_t>({2}, {1, 3}), 1).ok);
  std::vector<std::int64_t> many(2000, 7), tie = many;
  tie[5] = 8;
  EXPECT_TRUE(difference("y", Tensor::of<std::int64_t>({2000}, std::span<const std::int64_t>(many)),
                         Tensor::of<std::int64_t>({2000}, std::span<const std::int64_t>(tie)), 0)
                  .ok);
}

TEST(Bisect, FindsTheStep) {
  for (std::size_t count = 1; count < 20; ++count)
    for (std::size_t culprit = 0; culprit < count; ++culprit)
      EXPECT_EQ(first_culprit(count, [&](std::size_t k) { return k > culprit; }), culprit);
}

Model with_inputs(const std::vector<std::pair<std::string, Type>>& inputs) {
  Model model;
  model.opsets[""] = 17;
  for (const auto& [name, type] : inputs) model.graph().add_input(name, type);
  return model;
}

TEST(Feeds, SymbolsAreTied) {
  const Dim batch = Dim::symbol("batch"), seq = Dim::symbol("seq");
  const Model model = with_inputs({{"input_ids", Type::tensor(DType::i64, Shape({batch, seq}))},
                                   {"attention_mask", Type::tensor(DType::i64, Shape({batch, seq}))},
                                   {"past", Type::tensor(DType::f32, Shape({batch, seq + 1}))}});
  for (const auto& group : feed_groups(model, {}))
    for (const Feeds& feeds : group) {
      EXPECT_EQ(feeds.at("input_ids").dims(), feeds.at("attention_mask").dims());
      EXPECT_EQ(feeds.at("past").dims()[1], feeds.at("input_ids").dims()[1] + 1);
      for (const std::int64_t m : feeds.at("attention_mask").as<std::int64_t>()) EXPECT_EQ(m, 1);
    }
}

TEST(Feeds, GivenShapesBindSymbols) {
  const Dim w = Dim::symbol("w");
  const Model model =
      with_inputs({{"a", Type::tensor(DType::f32, Shape({Dim(1), w}))}, {"b", Type::tensor(DType::f32, Shape({w}))}});
  Options options;
  options.input_shapes["a"] = {1, 11};
  EXPECT_EQ(feed_groups(model, options)[0][0].at("b").dims(), Dims{11});
  options.input_shapes["a"] = {11};
  EXPECT_THROW(feed_groups(model, options), Error);
}

TEST(Feeds, IndicesStayInTheTable) {
  Model model = with_inputs({{"ids", Type::tensor(DType::i64, Shape({Dim(2), Dim(50)}))}});
  Graph& graph = model.graph();
  Value& table = graph.add_constant(Tensor::of<float>({5, 1}, {0, 1, 2, 3, 4}));
  graph.add("Gather", {&table, graph.inputs()[0]});
  const auto groups = feed_groups(model, {});
  for (const Feeds& feeds : groups[0])
    for (const std::int64_t id : feeds.at("ids").as<std::int64_t>()) EXPECT_TRUE(id >= 0 && id < 5);
}

TEST(Feeds, AreDeterministic) {
  const Model model = with_inputs({{"image", Type::tensor(DType::f32, Shape({Dim(), Dim(3), Dim(), Dim()}))}});
  const auto a = feed_groups(model, {})[0], b = feed_groups(model, {})[0];
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].at("image").same_content(b[i].at("image")));
  EXPECT_FALSE(a[0].at("image").dims() == a[1].at("image").dims());
}

}  // namespace
}  // namespace modelflow
