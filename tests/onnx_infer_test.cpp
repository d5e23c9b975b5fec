// Type inference with symbols, through shape arithmetic, subgraphs and local functions.
#include <gtest/gtest.h>

#include "modelflow/model.h"
#include "modelflow/pass.h"
#include "src/onnx/floor.h"

namespace modelflow {
namespace {

/// The type of `value` after inference, as "float32[batch,3]".
std::string inferred(const std::string& text, const std::string& value) {
  Model model = Model::from_text(text);
  infer_types(model);
  const Value* found = model.graph().find(value);
  if (!found) return "none";
  return std::string(name(found->dtype())) + (found->shape().has_rank() ? found->shape().str() : "[...]");
}

TEST(Infer, FloorsOfEqualQuotientsAreEqual) {
  const Dim h = Dim::symbol("h");
  EXPECT_EQ(floor_div(h + 1, 2), floor_div(h - 1, 2) + 1);
  EXPECT_EQ(floor_div(4 * h + 3, 2), 2 * h + 1);
  EXPECT_EQ(floor_div(7, 2), Dim(3));
  EXPECT_EQ(floor_div(Dim(-1), 2), Dim(-1));
  EXPECT_FALSE(floor_div(h, 2) == floor_div(h, 3));
  EXPECT_EQ(Dim::parse(floor_div(h * 3 + 1, 2).str()), floor_div(h * 3 + 1, 2));
  EXPECT_TRUE(floor_div(Dim(), 2).unknown());
  const Dim k = Dim::symbol("k");
  EXPECT_EQ(floor_div(2 * h + k + 3, 2), h + floor_div(k + 1, 2) + 1);
  EXPECT_EQ(floor_div(5 - h, 2), 2 - floor_div(h, 2));
  EXPECT_TRUE(floor_div(h - k, 2).unknown());
  const Dim odd = Dim::symbol("a/b (c)");
  EXPECT_EQ(Dim::parse(floor_div(odd, 2).str()), floor_div(odd, 2));
}

TEST(Infer, WhatAFileSaysOfQuotientsCounts) {
  const std::string head =
      "(float[n,2] x) => (float[] y) <int64 zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] w = {2}";
  const std::string tail =
      "> { s = Shape<start = 0, end = 1>(x) t = Sub(s, one) q = Div(t, two) p = Add(q, one) "
      "d = Concat<axis = 0>(p, w) r = ConstantOfShape(d) y = Neg(r) }";
  EXPECT_EQ(inferred(head + tail, "r"), "float32[modelflow_quotient_n_m1_by2 + 1,2]");
  EXPECT_EQ(inferred(head + ", float[m,2] r" + tail, "r"), "float32[m,2]");
  EXPECT_EQ(inferred(head + ", float[8,2] r" + tail, "r"), "float32[modelflow_quotient_n_m1_by2 + 1,2]");
}

TEST(Infer, WhatAFileSaysOfAConvolutionBoundsNothingElse) {
  const auto text = [](const std::string& told) {
    return "(float[1,1,n] x) => (float[] y) <float[1,1,3] k = {1, 2, 3}, int64[1] five = {5}, int64[1] axis = {2}, "
           "int64[1] big = {9223372036854775807}" +
           told + "> { u = Slice(x, five, big, axis) c = Conv(x, k) r = Neg(c) y = Neg(u) }";
  };
  EXPECT_EQ(inferred(text(""), "u"), "float32[1,1,modelflow_pos_n_m5]");
  EXPECT_EQ(inferred(text(", float[1,1,\"n - 5\"] c"), "u"), "float32[1,1,modelflow_pos_n_m5]");
}

TEST(Infer, WindowsOverSymbols) {
  const std::string weights = "float[8,3,1,1] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}";
  EXPECT_EQ(
      inferred("(float[N,3,H,W] x) => (float[] y) <" + weights + "> { c = Conv<strides = [1,2]>(x, w) y = Relu(c) }",
               "c"),
      "float32[N,8,H,modelflow_floor_W_p1_by2]");
  EXPECT_EQ(inferred("(float[N,3,H,W] x) => (float[] y) { p = MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>(x) "
                     "y = Relu(p) }",
                     "p"),
            "float32[N,3,H,W]");
  EXPECT_EQ(
      inferred("(float[N,3,H,W] x) => (float[] y) <float[4] s = {1, 1, 2, 2}> { u = Resize(x, , s) y = Relu(u) }", "u"),
      "float32[N,3,2*H,2*W]");
}

TEST(Infer, ShapeArithmeticKeepsSymbols) {
  EXPECT_EQ(inferred("(float[batch,seq,768] x) => (float[] y) "
                     "<int64 zero = {0}, int64 one = {1}, int64[1] axis = {0}, int64[2] heads = {12, 64}> {"
                     " s = Shape(x) b = Gather(s, zero) t = Gather(s, one)"
                     " b1 = Unsqueeze(b, axis) t1 = Unsqueeze(t, axis) target = Concat<axis = 0>(b1, t1, heads)"
                     " r = Reshape(x, target) y = Relu(r) }",
                     "r"),
            "float32[batch,seq,12,64]");
  EXPECT_EQ(inferred("(float[batch,seq,768] x) => (float[] y) <int64[2] to = {-1, 768}> "
                     "{ r = Reshape(x, to) y = Relu(r) }",
                     "r"),
            "float32[batch*seq,768]");
  EXPECT_EQ(inferred("(float[a,4] p, float[b,4] q) => (float[] y) { c = Concat<axis = 0>(p, q) y = Relu(c) }", "c"),
            "float32[a + b,4]");
  EXPECT_EQ(inferred("(float[N,M] x) => (float[] y) <int64[1] s = {1}, int64[1] e = {9223372036854775807}> "
                     "{ c = Slice(x, s, e, s) y = Relu(c) }",
                     "c"),
            "float32[N,modelflow_pos_M_m1]");
  // The expand of PyTorch: Where(Equal(shape, -1), ones, shape).
  EXPECT_EQ(inferred("(float[1,M] x, float[N] n) => (float[] y) <int64[1] m = {-1}, int64[1] o = {1}> {"
                     " s = Shape(n) q = Concat<axis = 0>(s, m) e = Equal(q, m) w = Where(e, o, q)"
                     " c = Expand(x, w) y = Relu(c) }",
                     "c"),
            "float32[N,M]");
}

TEST(Infer, WhatAUserCallsAnExtentIsNoFunctionOfAnother) {
  const std::string text =
      "(float[N,2,2,W] x, float[N,1,1,floor_W_p1_by2] m) => (float[] y) <float[2,2,1,1] w = {1, 2, 3, 4}> "
      "{ c = Conv<strides = [1,2]>(x, w) a = Add(c, m) y = Relu(a) }";
  EXPECT_TRUE(inferred(text, "a").starts_with("float32[N,2,2,modelflow_dim_"));
}

TEST(Infer, ExtentsThatLibonnxCountsAsNothing) {
  const std::string deconvolution =
      "(float[N,2,8,8] x) => (float[] y) <float[2,1,1,1] w = {1, 2}> "
      "{ c = ConvTranspose<output_shape = [1,2], strides = [2,2]>(x, w) y = Relu(c) }";
  EXPECT_EQ(inferred(deconvolution, "c"), "float32[N,1,1,2]");
  const std::string attention =
      "<ir_version: 10, opset_import: [\"\" : 23]> g (float[N,2,8] q, float[N,T,8] k, float[N,T,M] v) => (float[] y) "
      "{ c = Attention<kv_num_heads = 2, q_num_heads = 2>(q, k, v) y = Relu(c) }";
  EXPECT_TRUE(inferred(attention, "c").starts_with("float32[N,2,modelflow_dim_"));
}

TEST(Infer, WhatTheFileSaysOfValuesCountsWhereInferenceIsSilent) {
  const auto told = [](const std::string& op) {
    return "(float[n,4] x) => (float[2,4] y) <float[2,4] v> { v = " + op + "(x) y = Relu(v) }";
  };
  EXPECT_EQ(inferred(told("Abs"), "v"), "float32[n,4]");  // left over from before the batch was given a symbol
  EXPECT_EQ(inferred(told("Abs"), "y"), "float32[n,4]");
  EXPECT_EQ(inferred("<ir_version: 8, opset_import: [\"\" : 17, \"elsewhere\" : 1]> g " + told("elsewhere.Op"), "v"),
            "float32[2,4]");
  // and the interface is written as it was declared
  const auto again = [](const Model& model) {
    const std::string bytes = model.to_bytes();
    return Model::from_bytes(std::as_bytes(std::span(bytes)));
  };
  Model model = again(Model::from_text(told("Abs")));
  infer_types(model);
  EXPECT_EQ(again(model).graph().outputs()[0]->shape(), Shape::of({2, 4}));
}

TEST(Infer, UnnamedExtentsAreEqualToThemselves) {
  Model model = Model::from_text("(float[?,4,?] x) => (float[] y) { a = Relu(x) b = Abs(a) y = Add(a, b) }");
  infer_types(model);
  EXPECT_EQ(model.graph().find("a")->shape(), model.graph().find("b")->shape());
  // and the file does not show it
  EXPECT_EQ(model.to_bytes(),
            Model::from_text("(float[?,4,?] x) => (float[] y) { a = Relu(x) b = Abs(a) y = Add(a, b) }").to_bytes());
}

TEST(Infer, UnnamedExtentsOfBranchesAreTheirOwn) {
  const std::string branches =
      "If<then_branch = t () => (float[] p) { v = Compress(x, m) p = Relu(v) },"
      " else_branch = e () => (float[] q) { v = Compress(x, m) q = Abs(v) }>(c)";
  Model model = Model::from_text("(bool c, float[N] x, bool[N] m) => (float[] y, float[] z) { y = " + branches +
                                 " z = " + branches + " }");
  infer_types(model);
  std::vector<Shape> shapes;
  for (const auto& node : model.graph().nodes())
    for (const Graph* branch : node->subgraphs()) {
      shapes.push_back(branch->find("v")->shape());
      ASSERT_EQ(shapes.back().rank(), 1U);
      EXPECT_FALSE(shapes.back()[0].unknown());
      EXPECT_EQ(branch->outputs()[0]->shape(), shapes.back());
    }
  ASSERT_EQ(shapes.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(shapes[i] == shapes[j]);
}

TEST(Infer, WeightsSayTheRankBehindAConvolution) {
  const std::string text = "(float[] x) => (float[] y) <float[2,1,1,1] w = {1, 2}> { c = Conv(x, w) y = Relu(c) }";
  Model model = Model::from_text(text);
  infer_types(model);
  const Shape& c = model.graph().find("c")->shape();
  ASSERT_EQ(c.rank(), 4U);
  EXPECT_EQ(c[1], Dim(2));
  EXPECT_EQ(model.graph().find("y")->shape(), c);
}

TEST(Infer, Subgraphs) {
  const std::string text =
      "(bool c, float[N,4] x) => (float[] y) { z = If<then_branch = t () => (float[] p) { p = Relu(x) },"
      " else_branch = e () => (float[] q) { q = Abs(x) }>(c) y = Relu(z) }";
  EXPECT_EQ(inferred(text, "z"), "float32[N,4]");
}

/// The state of a Loop that grows is called by a symbol of the enclosing graph, or begins as something else.
TEST(Infer, SymbolsOfALoopsStateAreThoseOfEveryTripOrNone) {
  const auto state = [](const std::string& first, const std::string& next) {
    Model model = Model::from_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,2] x, float[1,2] one, int64 n) => (float[A,B] y) {\n"
        "more = Constant<value = bool {1}>() y = Loop(n, more, " +
        first + ") <body = b (int64 i, bool c, float[N,2] s) => (bool d, float[K,2] t) { d = Identity(c) " + next +
        " }>\n}");
    infer_types(model);
    return model.graph().nodes().back()->subgraphs()[0]->inputs()[2]->shape().str();
  };
  EXPECT_EQ(state("x", "t = Relu(s)"), "[N,2]");
  EXPECT_NE(state("x", "t = Concat<axis = 0>(s, s)"), "[N,2]");
  EXPECT_NE(state("one", "t = Relu(s)"), "[N,2]");
}

TEST(Infer, LocalFunctions) {
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]> g (float[N,3] x) => (float[] y) "
      "{ z = f.F<perm = [1,0]>(x) y = Relu(z) }\n"
      "<domain: \"f\", opset_import: [\"\" : 17]> F <perm> (a) => (b) { b = Transpose<perm: ints = @perm>(a) }";
  EXPECT_EQ(inferred(text, "z"), "float32[3,N]");
}

TEST(Infer, WhatIsPaddedToAMultipleDividesByIt) {
  const auto text = [](const std::string& mod) {
    return R"((float[N,S,3] x) => (float[] y) <int64 one = {1}, int64 many = {16}, int64[1] list = {-1}, int64[4] zeros = {0, 0, 0, 0},
    int64[1] zero = {0}, int64[4] rows = {0, -1, 16, 3}> {
      s = Shape(x)  n = Gather(s, one)  over = )" +
           mod + R"((n, many)  less = Sub(many, over)  more = )" + mod + R"((less, many)  end = Reshape(more, list)
      pads = Concat<axis = 0>(zeros, end, zero)  p = Pad(x, pads)  y = Reshape(p, rows)
    })";
  };
  EXPECT_EQ(inferred(text("Mod"), "p"), "float32[N,16*modelflow_floor_S_p15_by16,3]");
  EXPECT_EQ(inferred(text("Mod"), "y"), "float32[N,modelflow_floor_S_p15_by16,16,3]");
  EXPECT_EQ(inferred(text("Mod<fmod = 1>"), "p").find("by16"), std::string::npos);  // of a sign that nobody knows
}

TEST(Infer, ElementsOfARangeAreCounted) {
  const auto text = [](const std::string& index, const std::string& type) {
    return "(float[N,S] x) => (float[] y) <int64 at = {" + index +
           "}, int64 two = {2}, int64 three = {3}, int64[1] list = {1}> { s = Shape<start = 1>(x)  n = Squeeze(s)" +
           "  r = Range(two, n, three)  f = Cast<to = " + type +
           ">(r)  e = Gather(f, at)  i = Cast<to = 7>(e)  m = Reshape(i, list)  y = ConstantOfShape(m) }";
  };
  EXPECT_EQ(inferred(text("0", "1"), "y"), "float32[2]");
  EXPECT_EQ(inferred(text("4", "1"), "y"), "float32[14]");
  EXPECT_EQ(inferred(text("-1", "1"), "y"), "float32[3*modelflow_floor_S_by3 - 1]");
  EXPECT_EQ(inferred(text("0", "10"), "y").substr(0, 23), "float32[modelflow_dim_1");  // float16 rounds
}

TEST(Infer, AnAbsentAttributeIsItsDefault) {
  Model model = Model::from_text(R"((float[1,33] x) => (float[] y) <int64 step = {2}, int64 n = {4}> {
    y = STFT(x, step, , n)
  })");
  infer_types(model);
  EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[1,15,3,2]");  // onesided is 1
}

TEST(Infer, AxesFromBehindInOldOpsets) {
  Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 9]>
  test (float[4,1,8] x) => (float[] y) { y = Squeeze<axes = [-2]>(x) })");
  infer_types(model);
  EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[4,8]");
}

TEST(Infer, AnEmptyListOfAxesDropsAllOfExtentOne) {
  for (const char* spelling : {"value = int64[0] {}", "value_ints : ints = []"}) {
    Model model = Model::from_text(std::string("(float[4,1,8] x) => (float[] y) { axes = Constant<") + spelling +
                                   ">()  y = Squeeze(x, axes) }");
    infer_types(model);
    EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[4,8]") << spelling;
  }
}

TEST(Infer, UnknownLengthsOfKeysAreNotNone) {
  Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["" : 23]>
  test (float[N,2,3,4] q, float[N,2,T,4] k, float[N,2,T,4] v) => (float[] y, float[] s) {
    y, , , s = Attention(q, k, v)
  })");
  infer_types(model);
  const Shape& scores = model.graph().outputs()[1]->shape();
  EXPECT_TRUE(!scores.has_rank() || !scores.back().known()) << scores.str();
}

TEST(Infer, LabelsOfUnlikeExtents) {
  Model model = Model::from_text(R"((float[N,2,4] x, float[3,2,4] b, float[M,4] c) => (float[] y, float[] z) {
    y = Einsum<equation = "nsk,ntk->nst">(x, b)  z = Einsum<equation = "nsk, nk -> ns">(x, c)
  })");
  infer_types(model);
  EXPECT_EQ(model.graph().outputs()[0]->shape().str(), "[3,2,2]");  // N is 3 or 1
  EXPECT_FALSE(model.graph().outputs()[1]->shape()[0] == Dim::symbol("N"));
}

TEST(Infer, GroupNormalizationKeepsTheTypeOfItsInput) {
  Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["" : 23]>
  test (float16[N,4,3] x, float16[4] w) => (float16[] y) { z = GroupNormalization<num_groups = 2>(x, w, w)  y = Relu(z) })");
  infer_types(model);
  const Value* z = model.graph().find("z");
  ASSERT_TRUE(z);
  EXPECT_EQ(z->dtype(), DType::f16);
  EXPECT_EQ(z->shape().str(), "[N,4,3]");
}

TEST(Infer, ContradictionsAreNotFatal) {
  EXPECT_THROW(inferred("(float[2,3] x) => (float[] y) { z = Transpose<perm = [9,0]>(x) y = Relu(z) }", "z"), Error)
      << "an order that is none is refused on reading: passes index by it";
  EXPECT_EQ(inferred("(float[2,3] x, float[5,7] w) => (float[] y) { z = MatMul(x, w) y = Relu(z) }", "z"),
            "float32[...]");
}

}  // namespace
}  // namespace modelflow
