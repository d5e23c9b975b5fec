// Rules and kernels that are wrong on purpose: that verification sees them, says which, where and on what, does
// without them, and keeps a small model that shows it. And what it must not take for a fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "modelflow/data.h"
#include "src/correct.h"

namespace modelflow {
namespace {

namespace fs = std::filesystem;

Model text(const std::string& graph) {
  return Model::from_text("<ir_version: 8, opset_import: [\"\" : 17]>\nmade " + graph);
}

/// Sign-changing rules and the like, one for each way to be wrong.
Rule wrong_rule(std::string name, Pattern from, std::function<std::vector<Value*>(const Match&, Build&)> into) {
  return {
      .name = std::move(name), .doc = "wrong on purpose", .from = std::move(from), .when = {}, .into = std::move(into)};
}

Value& scalar(Build& build, float value) { return build.constant(Tensor::scalar(value)); }

/// -x -> -x + 0.001 sin(5000 x)
Rule wrong_at_every_value() {
  return wrong_rule("neg-as-product", pattern::op("Neg", {pattern::any("x")}), [](const Match& m, Build& b) {
    Value& wave = b.op("Sin", {&b.op("Mul", {m["x"], &scalar(b, 5000)})});
    Value& negated = b.op("Mul", {m["x"], &scalar(b, -1)});
    return std::vector<Value*>{&b.op("Add", {&negated, &b.op("Mul", {&wave, &scalar(b, 0.001F)})})};
  });
}

/// |x| -> x
Rule wrong_for_negative_values() {
  return wrong_rule("abs-of-positive", pattern::op("Abs", {pattern::any("x")}),
                    [](const Match& m, Build& b) { return std::vector<Value*>{&b.op("Identity", {m["x"]})}; });
}

/// Flatten -> Reshape, which cannot tell -1 from 0 where nothing is left.
Rule wrong_for_an_empty_batch() {
  return wrong_rule("flatten-as-reshape", pattern::op("Flatten", {pattern::any("x")}), [](const Match& m, Build& b) {
    Value& to = b.constant(Tensor::of<std::int64_t>({2}, {0, -1}));
    return std::vector<Value*>{&b.op("Reshape", {m["x"], &to})};
  });
}

/// Where(keep, s, low) -> s + (keep ? 0 : low): where all is hidden, the scores still count.
Rule wrong_under_a_masked_row() {
  return wrong_rule("mask-as-sum",
                    pattern::op("Where", {pattern::any("keep"), pattern::any("s"), pattern::constant("low")}),
                    [](const Match& m, Build& b) {
                      Value& bias = b.op("Where", {m["keep"], &scalar(b, 0), m["low"]});
                      return std::vector<Value*>{&b.op("Add", {m["s"], &bias})};
                    });
}

Rule right_rule() {
  return wrong_rule("relu-as-max", pattern::op("Relu", {pattern::any("x")}), [](const Match& m, Build& b) {
    return std::vector<Value*>{&b.op("Max", {m["x"], &scalar(b, 0)})};
  });
}

/// A way of nothing but one pass.
Route only(Pass pass) { return {.portable = {{"clean", {std::move(pass)}}}}; }

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = Runtime::find();
    if (!runtime_) GTEST_SKIP() << "no ONNX Runtime";
    options_.measure = false;
  }

  Report corrected(const Model& model, Rule rule) {
    return corrected(model, only(rewrite("own", "", {right_rule(), std::move(rule)})), "");
  }

  Report corrected(const Model& model, const Route& route, const fs::path& plugin) {
    const Verifier verifier(runtime_, model, options_, plugin);
    EXPECT_EQ(verifier.reference().why_not, "");
    Report report;
    const Pipeline pipeline(options_, runtime_, route);
    const Corrected right = build_correct(model, options_, pipeline, verifier, report);
    Report scratch;
    EXPECT_TRUE(verifier.check(Pipeline::emit(pipeline.lay_out(right.forms.whole(), right.disabled, scratch))).ok);
    return report;
  }

  std::shared_ptr<Runtime> runtime_;
  Options options_;
};

void expect_rule(const Report& report, const std::string& rule, const std::string& node, const std::string& feed) {
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].rule, rule);
  EXPECT_EQ(report.faults[0].pass, "own");
  EXPECT_NE(report.faults[0].node.find(node), std::string::npos) << report.faults[0].node;
  EXPECT_EQ(report.faults[0].feed, feed.empty() ? report.faults[0].feed : feed);
}

TEST_F(Faults, ARuleThatIsWrongAtEveryValue) {
  const Report report = corrected(text(R"((float[batch,4] x) => (float[batch,4] y)
    { a = Relu(x)  b = Sin(a)  c = Neg(b)  d = Relu(c)  y = Add(d, c) })"),
                                  wrong_at_every_value());
  expect_rule(report, "neg-as-product", "'c'", "typical");
  EXPECT_GT(report.faults[0].difference.max_rel, 1e-4);
  EXPECT_LT(report.faults[0].difference.max_rel, 1e-2);
}

TEST_F(Faults, APassThatThrowsFails) {
  const Pass own{
      .name = "own", .doc = "", .run = [](Graph&, Context&) -> int { throw Error(ErrorKind::internal, "a bug"); }};
  const Report report = corrected(text("(float[4] x) => (float[4] y) { y = Abs(x) }"), only(own), "");
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].what, "pass 'own' fails here, and is left out (pass 'own': a bug)");
}

TEST_F(Faults, TheNodeIsTheOneThatShowsIt) {
  const Report report = corrected(text(R"((float[batch,4] x) => (float[batch,4] y)
    { a = Exp(x)  b = Abs(a)  c = Sin(x)  d = Abs(c)  y = Add(b, d) })"),
                                  wrong_for_negative_values());
  expect_rule(report, "abs-of-positive", "'d'", "");
}

TEST_F(Faults, ARuleThatIsWrongForAnEmptyBatch) {
  const Report report = corrected(text(R"((float[batch,2,n] x) => (float[batch,m] y)
    { a = Relu(x)  f = Flatten(a)  y = Neg(f) })"),
                                  wrong_for_an_empty_batch());
  expect_rule(report, "flatten-as-reshape", "'f'", "empty batch");
}

TEST_F(Faults, ARuleThatIsWrongUnderAMaskedRow) {
  const Report report = corrected(text(R"((float[batch,t,t] s, bool[batch,1,t] keep) => (float[batch,t,t] y)
    <float low = {-10000.0}> { m = Where(keep, s, low)  y = Softmax(m) })"),
                                  wrong_under_a_masked_row());
  expect_rule(report, "mask-as-sum", "'m'", "masked rows");
}

TEST_F(Faults, ARightRuleIsLeftAlone) {
  EXPECT_TRUE(corrected(text("(float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }"), right_rule()).faults.empty());
}

TEST_F(Faults, APassWithoutRulesIsNamedWithTheFirstNodeThatDiffers) {
  const Pass pass{.name = "by-hand", .doc = "", .run = [](Graph& graph, Context&) {
                    for (const auto& node : graph.nodes())
                      if (node->is("Elu") && node->attrs.number("alpha", 1) == 1) {
                        node->attrs.set("alpha", 1.002F);
                        return 1;
                      }
                    return 0;
                  }};
  const Report report = corrected(text(R"((float[batch,4] x) => (float[batch,4] y)
    { a = Neg(x)  b = Elu(a)  c = Sin(b)  y = Neg(c) })"),
                                  only(pass), "");
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].pass, "by-hand");
  EXPECT_NE(report.faults[0].node.find("'b'"), std::string::npos) << report.faults[0].node;
}

/// Whatever decides by numbers behind a fault does not hide it, nor a model that enlarges every rounding.
TEST_F(Faults, AThousandthIsNeverExcused) {
  const char* const behind[] = {"v, i = TopK(c, k)  y = Identity(v)",
                                "v, i = TopK(c, k)  y = Cast<to = 1>(i)",
                                "y = Softmax(c)",
                                "a = ArgMax<axis = 1>(c)  f = Cast<to = 1>(a)  g = Mul(f, h)  y = Add(c, g)",
                                "d = Add(c, large)  e = Sub(d, large)  y = Mul(e, large)",
                                "m = ReduceMean<axes = [1]>(c)  d = Sub(c, m)  e = Mul(d, large)  y = Sin(e)"};
  for (const char* rest : behind) {
    const Report report = corrected(
        text("(float[batch,600] x) => (float[?,?] y) <int64[1] k = {600}, float large = {3000.0}, float h = {0.5}> {"
             " s = Sin(x)  b = Mul(s, s)  c = Neg(b) " +
             std::string(rest) + " }"),
        wrong_at_every_value());
    ASSERT_EQ(report.faults.size(), 1U) << rest;
    EXPECT_EQ(report.faults[0].rule, "neg-as-product") << rest;
  }
}

/// The same graphs with roundings in place of faults: sums of three in another order.
TEST_F(Faults, RoundingIsNoFault) {
  const Rule reordered =
      wrong_rule("sum-in-another-order",
                 pattern::op("Add", {pattern::op("Add", {pattern::any("a"), pattern::any("b")}), pattern::any("c")}),
                 [](const Match& m, Build& b) {
                   return std::vector<Value*>{&b.op("Add", {m["a"], &b.op("Add", {m["b"], m["c"]})})};
                 });
  const char* const behind[] = {"v, i = TopK(c, k)  y = Cast<to = 1>(i)",
                                "d = Sub(c, p)  e = Mul(d, large)  y = Sin(e)"};
  for (const char* rest : behind) {
    const Report report = corrected(
        text("(float[batch,3000] x) => (float[?,?] y) <int64[1] k = {3000}, float large = {1e6}, float h = {0.3333}> {"
             " s = Sin(x)  t = Cos(s)  p = Mul(s, h)  q = Add(p, t)  c = Add(q, h) " +
             std::string(rest) + " }"),
        reordered);
    EXPECT_TRUE(report.faults.empty()) << rest << ": " << report.faults[0].what;
  }
}

TEST_F(Faults, AReproducerIsSmall) {
  const fs::path folder = fs::temp_directory_path() / ("modelflow-faults-" + std::to_string(getpid()));
  options_.reproducer = folder;
  corrected(text(R"((float[batch,4] x, float[batch,4] z) => (float[batch,4] y, float[batch,4] u)
    { a = Elu(x)  b = Sin(a)  c = Abs(b)  d = Relu(c)  e = Add(d, z)  y = Tanh(e)  u = Sigmoid(z) })"),
            wrong_for_negative_values());
  const Model small = Model::load(folder / "model.onnx");
  ASSERT_EQ(small.graph().nodes().size(), 1U);
  EXPECT_TRUE(small.graph().nodes().front()->is("Abs"));
  const std::vector<Feeds> feeds = read_feeds(folder / "feeds.npz");
  ASSERT_EQ(feeds.size(), 1U);
  const std::vector<Tensor> right = open_session(*runtime_, small, {.optimize = false})->run(feeds[0]);
  const std::vector<Tensor> wrong =
      open_session(*runtime_, Model::load(folder / "wrong.onnx"), {.optimize = false})->run(feeds[0]);
  EXPECT_FALSE(difference("", right[0], wrong[0], 1e-4).ok);
  EXPECT_TRUE(fs::exists(folder / "model.onnxtxt") && fs::exists(folder / "fault.txt"));
  fs::remove_all(folder);
}

/// A fault that is an exception has no feed of its own; inputs that have a default are not fed.
TEST_F(Faults, AReproducerHasTheDefaultsOfInputs) {
  const fs::path folder = fs::temp_directory_path() / ("modelflow-defaults-" + std::to_string(getpid()));
  options_.reproducer = folder;
  const Pass throws{.name = "own", .doc = "", .run = [](Graph& graph, Context&) {
                      for (const auto& node : graph.nodes())
                        if (node->is("Abs")) throw Error(ErrorKind::internal, "on purpose");
                      return 0;
                    }};
  for (const Pass& pass : {throws, rewrite("own", "", {wrong_for_negative_values()})}) {
    corrected(text(R"((float[batch,4] x, float[4] z = {1, -20, 3, -40}) => (float[batch,4] y)
      { a = Elu(x)  b = Add(a, z)  c = Abs(b)  d = Relu(c)  y = Tanh(d) })"),
              only(pass), "");
    const Model small = Model::load(folder / "model.onnx");
    ASSERT_EQ(small.graph().nodes().size(), 1U);
    EXPECT_TRUE(small.graph().nodes().front()->is("Abs"));
    fs::remove_all(folder);
  }
}

/// Through the whole optimizer, with the kernels of tests/wrong_plugin.
class WrongKernels : public Faults {
 protected:
  Report corrected_with_plugin(const Model& model) { return corrected(model, route(options_), MODELFLOW_WRONG_PLUGIN); }
};

void expect_kernel(const Report& report, const std::string& word, const std::string& feed) {
  ASSERT_EQ(report.faults.size(), 1U) << report.text();
  EXPECT_NE(report.faults[0].kernel.find(word), std::string::npos) << report.faults[0].what;
  EXPECT_FALSE(report.faults[0].node.empty());
  EXPECT_EQ(report.faults[0].feed, feed.empty() ? report.faults[0].feed : feed);
}

std::string numbers(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += (text.empty() ? "" : ", ") + std::to_string(static_cast<double>(i * 7919 % 1000) / 1000 - 0.5);
  return "{" + text + "}";
}

TEST_F(Faults, AReproducerSaysWhereItsTextIsNotWhole) {
  const fs::path folder = fs::temp_directory_path() / ("modelflow-text-" + std::to_string(getpid()));
  options_.reproducer = folder;
  for (const std::size_t count : {4, 5000}) {
    const std::string weights = "float[" + std::to_string(count) + "] r) <float[" + std::to_string(count) + "] ";
    corrected(text("(float[batch,4] x, bool c) => (float[batch,4] y, float[k] z) { y = Abs(x)  z = If(c) <"
                   "then_branch = t () => (" +
                   weights + "k = " + numbers(count) +
                   "> { r = Neg(k) }, else_branch = e () => (float[k] r) <float[1] one = {1}> { r = Neg(one) }> }"),
              wrong_for_negative_values());
    std::ifstream file(folder / "fault.txt");
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(said.find("model.onnxtxt"), std::string::npos) << said;
    EXPECT_EQ(said.find("as text only to be read") != std::string::npos, count == 5000) << said;
    fs::remove_all(folder);
  }
}

TEST_F(WrongKernels, AtEveryValueInFrontOfADecision) {
  const Report report =
      corrected_with_plugin(text("(float[batch,64] x) => (float[batch,128] r, int64[batch,1] y)"
                                 "<float[64,128] w = " +
                                 numbers(64 * 128) +
                                 ">"
                                 "{ m = MatMul(x, w)  r = Relu(m)  y = ArgMax<axis = 1>(r) }"));
  expect_kernel(report, "matmul", "typical");
}

TEST_F(WrongKernels, ForAnEmptyBatch) {
  const Report report =
      corrected_with_plugin(text("(float[batch,5,64] x) => (float[batch,5,64] y)"
                                 "<float[64] w = " +
                                 numbers(64) +
                                 ">"
                                 "{ y = LayerNormalization(x, w, w) }"));
  expect_kernel(report, "layer_norm", "empty batch");
}

TEST_F(WrongKernels, AResultWithoutFusedOpsIsNotExcusedByThePlugin) {
  const Route route = only(rewrite("own", "", {wrong_for_an_empty_batch()}));
  const Report report = corrected(text(R"((float[batch,2,n] x) => (float[batch,m] y)
    { a = Relu(x)  f = Flatten(a)  y = Neg(f) })"),
                                  route, MODELFLOW_WRONG_PLUGIN);
  expect_rule(report, "flatten-as-reshape", "'f'", "empty batch");
}

TEST_F(WrongKernels, WhereNanIsHidden) {
  expect_kernel(corrected_with_plugin(text(R"((float[batch,64] x) => (float[batch,64] y)
    { s = Sigmoid(x)  y = Mul(x, s) })")),
                "activation", "NaN");
}

}  // namespace
}  // namespace modelflow
