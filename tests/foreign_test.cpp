// Functions of users that bear the names of our ops.
#include "src/emit/foreign.h"

#include <gtest/gtest.h>

#include "modelflow/modelflow.h"

namespace modelflow {
namespace {

Model with_function(const std::string& name, int opset) {
  return Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17, \"modelflow\" : 1]> g (float[N,4] x) => (float[N,4] y) "
      "{ a = modelflow." +
      name + "(x) b = Abs(a) y = Add(b, b) }\n<domain: \"modelflow\", opset_import: [\"\" : " + std::to_string(opset) +
      "]> " + name + " (p) => (q) { q = Neg(p) }");
}

Options quick() {
  Options options;
  options.measure = false;
  return options;
}

TEST(Foreign, AFunctionByTheNameOfOneOfOurOpsKeepsItsMeaning) {
  for (const char* name : {"Conv", "Conv_1", "Attention", "SomethingElse"}) {
    const std::optional<Model> plain = without_foreign_functions(with_function(name, 17));
    ASSERT_TRUE(plain) << name;
    EXPECT_TRUE(plain->functions.empty()) << name;
    EXPECT_TRUE(plain->graph().nodes().front()->is("Neg")) << name;
    EXPECT_TRUE(optimize(with_function(name, 17), quick()).report.verified || !Runtime::find()) << name;
  }
}

TEST(Foreign, OneThatCannotBeWrittenOutIsRefused) {
  try {
    optimize(with_function("Conv", 16), quick());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(error.what()).find("modelflow::Conv"), std::string::npos) << error.what();
  }
}

// ONNX Runtime runs its own Relu, whatever the function of this name says.
TEST(Foreign, AFunctionByTheNameOfAStandardOperatorIsNotRun) {
  const Model model = inline_functions(
      Model::from_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }\n"
                       "<domain: \"\", opset_import: [\"\" : 17]> Relu (p) => (q) { q = Neg(p) }"));
  EXPECT_TRUE(model.graph().nodes().front()->is("Relu"));
  EXPECT_TRUE(model.functions.empty());
}

/// What the call hands over may read what stands around it.
TEST(Foreign, CallsThatHandAGraphOverStay) {
  const char* text =
      "<ir_version: 10, opset_import: [\"\" : 17, \"l\" : 1]> g (float[N,3] x, bool c) => (float[] y) {\n"
      "y = l.f <body: graph = b1 () => (float[] t) { t = Exp(x) }> (x, c) }\n"
      "<domain: \"l\", opset_import: [\"\" : 17]> f <body> (x, c) => (y) {\n"
      "y = If <else_branch: graph = b2 () => (float[] e) { e = Neg(x) }, then_branch: graph = @body> (c) }";
  EXPECT_EQ(inline_functions(Model::from_text(text)).graph().nodes().front()->op(), "f");
  EXPECT_EQ(optimize(Model::from_text(text), quick()).model.graph().nodes().front()->op(), "f");
}

TEST(Foreign, OursAreKnown) {
  const Model model = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,2,8,8] x, float[N,S,4] z) => (float[N,2,8,8] y, "
      "float[N,S,4] t)"
      " <float[2,2,1,1] w = {1, 2, 3, 4}, float[2,2,1,1] v = {4, 3, 2, 1}, float[4,4] m = {1, 2, 3, 4, 5, 6, 7, 8, 9, "
      "1, 2,"
      " 3, 4, 5, 6, 7}, float[4] c = {1, 2, 3, 4}> "
      "{ a = Conv(x, w) b = Relu(a) d = Conv(b, v) y = Add(d, x) p = MatMul(z, m) q = Add(p, c) t = Softmax<axis = "
      "-1>(q) }");
  EXPECT_FALSE(without_foreign_functions(optimize(model, quick()).model));
}

}  // namespace
}  // namespace modelflow
