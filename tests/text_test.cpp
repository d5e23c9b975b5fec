// The text form and equality up to names.
#include <gtest/gtest.h>

#include <limits>

#include "modelflow/error.h"
#include "modelflow/model.h"
#include "src/text/equal.h"

namespace modelflow {
namespace {

void expect_round_trip(const Model& model) {
  const std::string text = model.to_text();
  const Model back = Model::from_text(text);
  EXPECT_TRUE(equal(back, model)) << text;
  EXPECT_EQ(back.to_text(), text);
}

bool same(const std::string& a, const std::string& b) { return equal(Model::from_text(a), Model::from_text(b)); }

TEST(Text, RoundTrips) {
  expect_round_trip(Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21, \"my.domain\" : 3], producer_name: \"a \\\"b\\\" \\\\ c\","
      " metadata_props: [\"k\": \"v\"]> \"a graph\" (float[N,\"2*M + 1\",?] \"x/1\", float s, int64[] z, seq(float[]) "
      "q)"
      " => (float[] y, optional(seq(map(int64, string))) o)"
      " <float[2] w = {1.5, -2e-30}, int64 big = {-9223372036854775807}, string[2] t = {\"a\", \"\"},"
      " float16[1] h = {15360}, bool[2] b = {0, 1}, double d = {0.1}> {"
      " y, \"\", other = my.domain.Op:variant <alpha = 1.0, name = \"n\", list: ints = [], f = [1.0, 2.5], i = 3,"
      " value = float[1] {2.0}> (\"x/1\", \"\", w) o = Keep(q) }"));
  expect_round_trip(Model::from_text(
      "(bool c, float[N] x) => (float[N] y) { y = If<then_branch = t () => (float[N] p) { p = Relu(x) },"
      " else_branch = e () => (float[N] r) <float k = {2}> { r = Mul(x, k) }>(c) }"));
  expect_round_trip(Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]> g (float[N] x) => (float[N] y) { y = f.F<a = 0.5>(x) }\n"
      "<domain: \"f\", opset_import: [\"\" : 17]> F <b, a: float = 1.0> (p) => (q) "
      "{ q = LeakyRelu<alpha: float = @a>(p) }"));
}

TEST(Text, SpecialNumbers) {
  Model model = Model::from_text("(float[N] x) => (float[N] y) { y = Add(x, x) }");
  const float odd[] = {std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::denorm_min(),
                       -0.0f,
                       1e20f};
  Value& w = model.graph().add_constant(Tensor::of<float>({6}, std::span<const float>(odd)), "w");
  model.graph().set_input(*model.graph().nodes().front(), 1, &w);
  expect_round_trip(model);
}

TEST(Text, LargeConstantsAreShownByTheirHash) {
  Model model = Model::from_text("(float[N] x) => (float[N] y) { y = Add(x, x) }");
  Value& w = model.graph().add_constant(Tensor::make(DType::f32, {100, 100}, [](std::byte*) {}), "w");
  model.graph().set_input(*model.graph().nodes().front(), 1, &w);
  EXPECT_NE(model.to_text().find("# 10000 elements, hash "), std::string::npos);
  EXPECT_THROW((void)Model::from_text(model.to_text()), Error);
}

TEST(Text, ErrorsAreOneLine) {
  for (const char* text : {"", "(float[N] x => (y) {}", "(float[N] x) => (float[N] y) { y = Relu(x) } tail",
                           "(float[N] x) => (float[N] y) { y = Relu<a = 99999999999999999999>(x) }",
                           "(float[N] x) => (float[N] y) { y = Relu(z) }"}) {
    try {
      Model::from_text(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

TEST(Equal, UpToInnerNamesAndOrder) {
  const std::string model = "(float[N] x) => (float[N] y) <float k = {2}> { a = Relu(x) b = Mul(x, k) y = Add(a, b) }";
  EXPECT_TRUE(
      same(model, "(float[N] x) => (float[N] y) <float c = {2.0000001}> { q = Mul(x, c) p = Relu(x) y = Add(p, q) }"));
  EXPECT_FALSE(same(model, "(float[N] x) => (float[N] y) <float k = {2}> { a = Relu(x) b = Mul(x, k) y = Add(b, a) }"));
  EXPECT_FALSE(same(model, "(float[N] x) => (float[N] y) <float k = {3}> { a = Relu(x) b = Mul(x, k) y = Add(a, b) }"));
  EXPECT_FALSE(same(model, "(float[N] x) => (float[N] z) <float k = {2}> { a = Relu(x) b = Mul(x, k) z = Add(a, b) }"));
  EXPECT_FALSE(same(model, "(float[N] x) => (float[N] y) <float k = {2}> { a = Abs(x) b = Mul(x, k) y = Add(a, b) }"));
  EXPECT_TRUE(same("(float[N] x) => (float[N] y) <float k = {2}> { a = Mul(x, k) y = Mul(a, k) }",
                   "(float[N] x) => (float[N] y) <float k = {2}, float l = {2}> { a = Mul(x, k) y = Mul(a, l) }"));
  EXPECT_FALSE(same("(float[N] x) => (float[N] y) { y = Elu<alpha = 1.0>(x) }",
                    "(float[N] x) => (float[N] y) { y = Elu<alpha = 2.0>(x) }"));
}

TEST(Equal, LooksIntoSubgraphs) {
  auto text = [](const std::string& op) {
    return "(bool c, float[N] x) => (float[N] y) { y = If<then_branch = t () => (float[N] p) { p = " + op +
           "(x) }, else_branch = e () => (float[N] r) { r = Abs(x) }>(c) }";
  };
  EXPECT_TRUE(same(text("Relu"), text("Relu")));
  EXPECT_FALSE(same(text("Relu"), text("Neg")));
}

}  // namespace
}  // namespace modelflow
