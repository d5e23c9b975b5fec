// Which made-up feeds the original's results speak for: none of those that ONNX Runtime itself leaves open.
#include "src/verify/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace modelflow {
namespace {

std::set<std::string> names_of_feeds(const std::string& text) {
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  if (!runtime) return {};
  const Model model = Model::from_text("<ir_version: 8, opset_import: [\"\" : 17]>\ng " + text);
  std::set<std::string> names;
  for (const Feed& feed : make_reference(*runtime, model, {}).feeds) names.insert(feed.name);
  return names;
}

TEST(Reference, NanIsNotFedToWhatPicksTheLargest) {
  const auto plain = names_of_feeds("(float[N,2,8,8] x) => (float[] y) { y = Relu(x) }");
  if (plain.empty()) GTEST_SKIP() << "no ONNX Runtime";
  EXPECT_TRUE(plain.contains("NaN") && plain.contains("infinity"));
  const auto pooled = names_of_feeds("(float[N,2,8,8] x) => (float[] y) { y = MaxPool<kernel_shape = [2, 2]>(x) }");
  EXPECT_FALSE(pooled.contains("NaN") || pooled.contains("infinity"));
  EXPECT_TRUE(pooled.contains("extreme"));
}

/// QLinearAdd says no type of its result, which the convolution behind it multiplies exactly all the same.
TEST(Reference, ProductsOfWhatContribOpsGiveRun) {
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\n"
      "g (float[1,2,4,4] x) => (float[] y) <float s = {0.1}, int8 z = {3}, int8[2,2,1,1] w = {1,-2,3,4}, float ws = "
      "{0.5}, "
      "int8 none = {0}> {\n"
      "q = QuantizeLinear(x, s, z) a = com.microsoft.QLinearAdd(q, s, z, q, s, z, s, z)\n"
      "c = QLinearConv(a, s, z, w, ws, none, s, z) y = DequantizeLinear(c, s, z) }");
  const Reference reference = make_reference(*runtime, model, {});
  EXPECT_FALSE(reference.feeds.empty()) << reference.why_not;
}

TEST(Reference, SamplesForCalibrationStandBesideMadeUpFeeds) {
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[N,2] x) => (float[N,2] y) { y = Relu(x) }");
  Options options;
  options.calibration = [](std::size_t index) {
    return index == 0 ? std::optional<Feeds>({{"x", Tensor::of<float>({1, 2}, {1, 2})}}) : std::nullopt;
  };
  const Reference reference = make_reference(*runtime, model, options);
  ASSERT_GT(reference.feeds.size(), 3U);
  EXPECT_EQ(reference.feeds.front().name, "sample");
  EXPECT_TRUE(std::ranges::any_of(reference.feeds, [](const Feed& feed) { return feed.empty; }));
}

TEST(Reference, WhatStandsInAFunctionCountsAsWell) {
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]>\n"
      "g (float[N,2,8,8] x) => (float[] y) { y = own.Largest(x) }\n"
      "<domain: \"own\", opset_import: [\"\" : 17]>\n"
      "Largest (x) => (y) { y = ReduceMax<axes = [1]>(x) }");
  for (const Feed& feed : make_reference(*runtime, model, {}).feeds) EXPECT_NE(feed.name, "NaN");
}

TEST(Reference, NothingIsFedToRecurrentLayers) {
  const auto plain = names_of_feeds("(float[N,2] x) => (float[] y) { y = Relu(x) }");
  if (plain.empty()) GTEST_SKIP() << "no ONNX Runtime";
  EXPECT_TRUE(plain.contains("empty batch"));
  const auto layer = names_of_feeds(
      "(float[S,N,1] x) => (float[] y) <float[1,4,1] w = {1, 2, 3, 4}, float[1,4,1] r = {1, 2, 3, 4}> "
      "{ y = LSTM<hidden_size = 1>(x, w, r) }");
  EXPECT_FALSE(layer.contains("empty batch"));
  EXPECT_FALSE(layer.empty());
}

// With no rows ONNX Runtime 1.31 gives the extents of the input where the axis is counted from the end; 1.32 does not.
TEST(Reference, ShapesThatAreNotOnnxsAreNoReference) {
  const std::shared_ptr<Runtime> runtime = Runtime::find();
  if (!runtime) GTEST_SKIP() << "no ONNX Runtime";
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[N,7,64] x) => (float[] y) { y = ReduceMean<axes = [-1], keepdims = 1>(x) }");
  const Reference reference = make_reference(*runtime, model, {});
  ASSERT_FALSE(reference.feeds.empty());
  for (std::size_t k = 0; k < reference.feeds.size(); ++k) {
    const Dims rows = reference.feeds[k].values.at("x").dims();
    EXPECT_EQ(reference.outputs[k][0].dims(), (Dims{rows[0], 7, 1})) << reference.feeds[k].name;
  }
}

TEST(Reference, PartsThatDoNotFitAreNoReferenceWhereTheyAreEmpty) {
  const auto names = names_of_feeds("(float[S,2] x, float[2,2] z) => (float[] y) { y = Concat<axis = 1>(x, z) }");
  if (!Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  EXPECT_FALSE(names.contains("empty batch"));
  EXPECT_FALSE(names.empty());
}

TEST(Reference, AnExtentOfZeroThatReshapeTakesForAnotherIsNoReference) {
  const auto names = names_of_feeds(
      "(float[N,2,4] x) => (float[] y) <int64[1] rest = {-1}, int64 at = {0}, int64[1] axes = {0}> {\n"
      "  s = Shape(x) n = Gather(s, at) u = Unsqueeze(n, axes) t = Concat<axis = 0>(rest, u) y = Reshape(x, t) }");
  if (!Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  EXPECT_FALSE(names.contains("empty batch"));
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace modelflow
