// What counts as rounding where two models are compared part by part.
#include "src/verify/parts.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "modelflow/pass.h"
#include "src/verify/compare.h"

namespace modelflow {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();

/// Scores under an additive mask, and what is made of them.
Model masked(const std::string& end) {
  return Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[2,3] x, float[2,3] mask) => (float[2,3] y)\n"
      "<float[2,1] seen = {0, 1}, float off = {0.001}, float one = {1}, float half = {0.5}, float up = {1.000001}> {\n "
      " s = Add (x, mask)\n" +
      end + "}");
}

class PartsTest : public testing::Test {
 protected:
  Parts compared(const std::string& original, const std::string& other) {
    const Model model = masked(original);
    const Reference reference = make_reference(*runtime_, model, {}, {{.values = feeds_}});
    return compare_parts(*runtime_, model, masked(other), feeds_, reference, {});
  }

  void SetUp() override {
    if (!runtime_) GTEST_SKIP() << "no ONNX Runtime";
  }

  const std::shared_ptr<Runtime> runtime_ = Runtime::find();
  /// The first row is hidden as a whole.
  const Feeds feeds_ = {{"x", Tensor::of<float>({2, 3}, {0.5F, 1, 2, 3, 4, 5})},
                        {"mask", Tensor::of<float>({2, 3}, {kLowest, kLowest, kLowest, 0, 0, kLowest})}};
};

TEST_F(PartsTest, TheSameInOtherWordsAgrees) {
  EXPECT_TRUE(compared("y = Softmax (s)\n", "e = Exp (s)\n a = Softmax (s)\n y = Identity (a)\n").agree);
}

/// A digit more or less of the lowest number decides between the keys of such a row: that is no rounding which excuses
/// another result.
TEST_F(PartsTest, AnotherResultOfARowThatIsHiddenIsNoRounding) {
  const Parts parts = compared("y = Softmax (s)\n", "a = Softmax (s)\n y = Mul (a, seen)\n");
  EXPECT_FALSE(parts.agree);
  EXPECT_NE(parts.first.find("Softmax"), std::string::npos) << parts.first;
}

TEST_F(PartsTest, AnErrorOfAThousandthIsNoRounding) {
  EXPECT_FALSE(compared("y = Softmax (s)\n", "a = Softmax (s)\n y = Add (a, off)\n").agree);
}

// 0.5, 1, 2, 3, 4 and 5 steps of one: the first lies half-way between two.
TEST_F(PartsTest, HalfwayBetweenTwoStepsMayGoEitherWay) {
  const std::string original = "q = QuantizeLinear (x, one)\n y = DequantizeLinear (q, one)\n";
  const auto rounded = [](const std::string& what) {
    return "a = " + what + "\n q_8 = QuantizeLinear (a, one)\n y = DequantizeLinear (q_8, one)\n";
  };
  EXPECT_TRUE(compared(original, rounded("Mul (x, up)")).agree);
  EXPECT_FALSE(compared(original, rounded("Add (x, one)")).agree);
  EXPECT_FALSE(compared(original, rounded("Mul (x, half)")).agree);
}

/// An image, and what is made of it channels last.
Model of_image(const std::string& nodes) {
  Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[1,2,3,4] x) => (float[1,2,3,4] y) <float off = {0.01}> {\n" +
      nodes + "}");
  infer_types(model);
  return model;
}

TEST_F(PartsTest, ValuesWhoseChannelsWereMovedAreComparedToo) {
  const Model original = of_image("a = Relu (x)\n b = Neg (a)\n y = Exp (b)\n");
  const auto moved = [&](const std::string& b) {
    return of_image("t = Transpose <perm = [0,2,3,1]> (x)\n a_nhwc = Relu (t)\n c = Neg (a_nhwc)\n b_nhwc = " + b +
                    "\n e = Exp (b_nhwc)\n y = Transpose <perm = [0,3,1,2]> (e)\n");
  };
  std::vector<float> numbers;
  for (int i = 0; i < 24; ++i) numbers.push_back(0.1F * static_cast<float>(i));
  const Feeds feeds = {{"x", Tensor::of<float>({1, 2, 3, 4}, numbers)}};
  const Reference reference = make_reference(*runtime_, original, {}, {{.values = feeds}});
  const auto compared = [&](const std::string& b) {
    return compare_parts(*runtime_, original, moved(b), feeds, reference, {});
  };
  EXPECT_TRUE(compared("Identity (c)").agree);
  const Parts wrong = compared("Add (c, off)");
  EXPECT_FALSE(wrong.agree);
  EXPECT_NE(wrong.first.find("Neg"), std::string::npos) << wrong.first;
}

/// Factors of Resize that callers give: a digit less would take a row from its result, which nothing else fits then.
TEST_F(PartsTest, WhatDecidesExtentsIsNotMoved) {
  const auto model = [](const std::string& factors, const std::string& sum) {
    return Model::from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "g (float[1,1,3,3] x, float[4] by, float[1,1,6,6] z) => (float[1,1,6,6] y) <float off = {0.01}> {\n"
        "f = " +
        factors + " (by)\n" +
        "r = Resize <mode = \"nearest\", nearest_mode = \"floor\", coordinate_transformation_mode = \"asymmetric\"> "
        "(x, \"\", f)\n" +
        sum + "}");
  };
  const auto filled = [](const Dims& dims) {
    return Tensor::of<float>(dims, std::vector<float>(static_cast<std::size_t>(element_count(dims)), 0.7F));
  };
  const Feeds feeds = {
      {"x", filled({1, 1, 3, 3})}, {"by", Tensor::of<float>({4}, {1, 1, 2, 2})}, {"z", filled({1, 1, 6, 6})}};
  for (const std::string factors : {"Identity", "Relu"}) {
    SCOPED_TRACE(factors);
    const Model original = model(factors, "y = Add (r, z)\n");
    const Model wrong = model(factors, "a = Add (r, z)\n y = Add (a, off)\n");
    const Reference reference = make_reference(*runtime_, original, {}, {{.values = feeds}});
    EXPECT_FALSE(compare_parts(*runtime_, original, wrong, feeds, reference, {}).agree);
  }
}

/// So many that are half-way between two steps, and an input that may be empty.
Model rounded(const std::string& x) {
  return Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[600] x, float[N] z) => (float[600] y, float[N] w) <float one = {1}, float up = {1.000001}, float half "
      "= "
      "{0.5}> {\n" +
      x + " q = QuantizeLinear (a, one)\n y = DequantizeLinear (q, one)\n w = Neg (z)\n}");
}

TEST_F(PartsTest, AllMayLieHalfwayAndOneOfTheInputsMayBeEmpty) {
  for (const std::int64_t extent : {3, 0}) {
    const Feeds feeds = {{"x", Tensor::of<float>({600}, std::vector<float>(600, 2.5F))},
                         {"z", Tensor::of<float>({extent}, std::vector<float>(static_cast<std::size_t>(extent)))}};
    const Model original = rounded("a = Identity (x)\n");
    const Reference reference = make_reference(*runtime_, original, {}, {{.values = feeds}});
    const auto ok = [&](const std::string& x) {
      return compare(*runtime_, reference, original, rounded(x), {}, {}).ok;
    };
    EXPECT_TRUE(ok("b = Mul (x, up)\n a = Identity (b)\n")) << extent;
    EXPECT_FALSE(ok("b = Add (x, half)\n a = Add (b, half)\n")) << extent;
  }
}

/// Twenty products; in `other` each is followed by a factor.
Model products(bool other, float factor) {
  std::string text = "<ir_version: 8, opset_import: [\"\" : 17]>\ng (float[1,2] v0) => (float[1,2] y) <float[2,2] w = ";
  text += "{0.5, 0.5, 0.25, 0.75}, float f = {" + std::to_string(factor) + "}> {\n";
  for (int i = 1; i <= 20; ++i) {
    const std::string from = "v" + std::to_string(i - 1), to = "v" + std::to_string(i), p = "p" + std::to_string(i);
    text += other ? p + " = MatMul (" + from + ", w) " + to + " = Mul (" + p + ", f)\n"
                  : to + " = MatMul (" + from + ", w)\n";
  }
  Model model = Model::from_text(text + "y = Identity (v20)\n}");
  infer_types(model);
  return model;
}

TEST_F(PartsTest, ManySmallFaultsAreNoRounding) {
  const Feeds feeds = {{"v0", Tensor::of<float>({1, 2}, {1, 2})}};
  const Model original = products(false, 1);
  const Reference reference = make_reference(*runtime_, original, {}, {{.values = feeds}});
  const auto ok = [&](float factor) {
    return compare(*runtime_, reference, original, products(true, factor), {}, {}).ok;
  };
  EXPECT_TRUE(ok(1.000001F));
  const Parts parts = compare_parts(*runtime_, original, products(true, 1.00009F), feeds, reference, {});
  EXPECT_TRUE(parts.agree) << parts.first;
  EXPECT_FALSE(ok(1.00009F)) << "each is within the tolerance, all together are not";
  EXPECT_FALSE(ok(1e30F)) << "infinite where the original is not";
}

/// ONNX Runtime's own mean of 32768 equal numbers is 400 last digits off, and what is left of such an image is made 316
/// times as large: a result is right that adds better.
TEST_F(PartsTest, MeansMayBeBetterThanThoseOfTheOriginal) {
  const auto model = [](const std::string& nodes) {
    return Model::from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "g (float[1,1,32,32,32] x) => (float[1,1,32,32,32] y)\n"
        "<float[1] s = {2}, float[1] b = {0.25}, float[1] same = {0.18351021}, float off = {0.0001}, float three = "
        "{3}> {\n"
        "c = Add (x, same)\n" +
        nodes + "}");
  };
  const Feeds feeds = {{"x", Tensor::of<float>({1, 1, 32, 32, 32}, std::vector<float>(32768))}};
  const Model norm = model("y = InstanceNormalization (c, s, b)\n");
  const Reference reference = make_reference(*runtime_, norm, {}, {{.values = feeds}});
  const auto agrees = [&](const std::string& nodes) {
    return compare_parts(*runtime_, norm, model(nodes), feeds, reference, {}).agree;
  };
  const std::string exact = "apart = Sub (c, c)\n scaled = Mul (apart, three)\n sum = Add (scaled, b)\n";
  EXPECT_TRUE(agrees(exact + "y = Identity (sum)\n"));
  EXPECT_TRUE(agrees("again = InstanceNormalization (c, s, b)\n y = Identity (again)\n")) << "as the original does";
  EXPECT_FALSE(agrees(exact + "y = Add (sum, off)\n"));
}

/// Boxes of 640 beside scores of 1, which one product makes in the other model: neither hides a fault of the other.
TEST_F(PartsTest, PartsOfOneValueAreJudgedEachByItsOwnSize) {
  const auto model = [](const std::string& nodes) {
    return Model::from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "g (float[1,2] x) => (float[1,4] y, int64[1,1] k) <float big = {640}, float one = {1}, float[4] both = {640, "
        "640, 1, 1}, "
        "float[4] off = {0, 0, 0.05, 0}, float[4] digits = {0.0001, 0, 0, 0.0000001}> {\n" +
        nodes + "k = ArgMax <axis = 1> (x)\n}");  // where something decides, parts alone tell rounding from faults
  };
  const Feeds feeds = {{"x", Tensor::of<float>({1, 2}, {1, 0.5F})}};
  const Model original = model("c = Mul (x, big) d = Mul (x, one) y = Concat <axis = 1> (c, d)\n");
  const Reference reference = make_reference(*runtime_, original, {}, {{.values = feeds}});
  const std::string joined = "t = Concat <axis = 1> (x, x) m = Mul (t, both)\n";
  EXPECT_TRUE(compare(*runtime_, reference, original, model(joined + "y = Add (m, digits)\n"), {}, {}).ok);
  EXPECT_FALSE(compare(*runtime_, reference, original, model(joined + "y = Add (m, off)\n"), {}, {}).ok);
}

}  // namespace
}  // namespace modelflow
