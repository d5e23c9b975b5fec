// Patterns, rules and what becomes of a match.
#include <gtest/gtest.h>

#include "modelflow/modelflow.h"
#include "src/flow/flow.h"
#include "src/graph/verify.h"

namespace modelflow {
namespace {

using namespace pattern;

const std::string kHead = "<ir_version: 8, opset_import: [\"\" : 20]> g ";

Model model(const std::string& text) {
  Model made = Model::from_text(kHead + text);
  infer_types(made);
  return made;
}

std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> found;
  for (const auto& node : graph.nodes()) found.push_back(node->op());
  return found;
}

using Ops = std::vector<std::string>;

/// Runs one pass of these rules; the report of its one step.
StepReport run(Model& m, std::vector<Rule> rules, Options options = {}) {
  Report report;
  Flow flow(options, nullptr, report);
  flow.run(m, {.name = "test", .passes = {rewrite("rules", "Test rules.", std::move(rules))}});
  verify(m, "after the rules");
  return report.steps.at(0);
}

Rule unary(std::string name, Pattern from, std::string type, Attrs attrs = {}) {
  return {
      .name = std::move(name), .doc = "", .from = std::move(from), .when = {}, .into = [=](const Match& m, Build& b) {
        return std::vector<Value*>{&b.op(type, {m["x"]}, attrs)};
      }};
}

Rule gelu() {
  const Pattern x = any("x");
  return unary("gelu", product({x, op("Erf", {x / 1.41421356}) + 1}, 0.5), "Gelu");
}

TEST(Rewrite, ProductsInEveryGrouping) {
  const std::string gate = "a = Div(x, r) b = Erf(a) c = Add(one, b) ";
  for (const std::string end :
       {"d = Mul(x, c) y = Mul(d, h)", "d = Mul(c, h) y = Mul(x, d)", "d = Mul(h, x) y = Mul(c, d)",
        "d = Div(x, two) y = Mul(d, c)", "d = Mul(c, x) y = Div(d, two)"}) {
    Model m = model(
        "(float[N,4] x) => (float[N,4] y) "
        "<float r = {1.4142135}, float one = {1}, float h = {0.5}, float two = {2}> {" +
        gate + end + "}");
    const StepReport step = run(m, {gelu()});
    EXPECT_EQ(ops(m.graph()), Ops{"Gelu"}) << end;
    EXPECT_EQ(step.hits.at("gelu"), 1);
    EXPECT_EQ(m.graph().outputs()[0]->name(), "y");
    EXPECT_TRUE(m.graph().initializers().empty());
  }
}

TEST(Rewrite, AnotherFactorIsAMissWithAReason) {
  Model m = model(
      "(float[N,4] x) => (float[N,4] y) <float r = {1.4142135}, float one = {1}, float h = {0.6}> "
      "{ a = Div(x, r) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, h) }");
  const StepReport step = run(m, {gelu()});
  EXPECT_EQ(m.graph().nodes().size(), 5u);
  ASSERT_EQ(step.misses.size(), 1u);
  EXPECT_EQ(step.misses[0].matched, 5);
  EXPECT_NE(step.misses[0].reason.find("scaled by another number"), std::string::npos) << step.misses[0].reason;
}

TEST(Rewrite, ValueWithAnotherReaderStays) {
  Model m = model("(float[4] x) => (float[4] y, float[4] z) { a = Neg(x) y = Neg(a) z = Abs(a) }");
  const StepReport step = run(m, {unary("neg-neg", op("Neg", {op("Neg", {any("x")})}), "Identity")});
  EXPECT_EQ(ops(m.graph()), (Ops{"Neg", "Neg", "Abs"}));
  ASSERT_EQ(step.misses.size(), 1u);
  EXPECT_NE(step.misses[0].reason.find("'a' has readers outside"), std::string::npos) << step.misses[0].reason;
}

TEST(Rewrite, InnerGraphOutputStays) {
  Model m = model("(float[4] x) => (float[4] y, float[4] a) { a = Neg(x) y = Neg(a) }");
  const StepReport step = run(m, {unary("neg-neg", op("Neg", {op("Neg", {any("x")})}), "Abs")});
  EXPECT_EQ(m.graph().nodes().size(), 2u);
  EXPECT_NE(step.misses.at(0).reason.find("'a' is a graph output"), std::string::npos) << step.misses[0].reason;
}

TEST(Rewrite, OperandOrders) {
  const Rule rule = unary("silu", any("x") * op("Sigmoid", {any("x")}), "Relu");
  for (const std::string body : {"s = Sigmoid(x) y = Mul(x, s)", "s = Sigmoid(x) y = Mul(s, x)"}) {
    Model m = model("(float[4] x) => (float[4] y) {" + body + "}");
    run(m, {rule});
    EXPECT_EQ(ops(m.graph()), Ops{"Relu"});
  }
  Model other = model("(float[4] x, float[4] z) => (float[4] y) { s = Sigmoid(z) y = Mul(s, x) }");
  EXPECT_NE(run(other, {rule}).misses.at(0).reason.find("is not the value"), std::string::npos);
  EXPECT_EQ(other.graph().nodes().size(), 2u);
}

TEST(Rewrite, NumbersMatchTheirInverse) {
  const Rule rule = unary("scale", (any("x") + 3) * 0.5, "Abs");
  for (const std::string body : {"a = Add(three, x) y = Mul(a, h)", "a = Sub(x, m) y = Div(a, two)"}) {
    Model m =
        model("(float[4] x) => (float[4] y) <float three = {3}, float m = {-3}, float h = {0.5}, float two = {2}>{" +
              body + "}");
    run(m, {rule});
    EXPECT_EQ(ops(m.graph()), Ops{"Abs"}) << body;
  }
}

TEST(Rewrite, NumberThatEnlargesIsRefused) {
  const Rule rule = unary("half", any("x") * 0.5, "Abs");
  Model grows = model("(float[4] x) => (float[3,4] y) <float[3,1] h = {0.5, 0.5, 0.5}> { y = Mul(x, h) }");
  EXPECT_NE(run(grows, {rule}).misses.at(0).reason.find("the replacement would be"), std::string::npos);
  EXPECT_EQ(ops(grows.graph()), Ops{"Mul"});
  Model same = model("(float[3,4] x) => (float[3,4] y) <float[3,1] h = {0.5, 0.5, 0.5}> { y = Mul(x, h) }");
  run(same, {rule});
  EXPECT_EQ(ops(same.graph()), Ops{"Abs"});
  Model unknown = model("(float[N] x) => (float[M] y) <float[3] h = {0.5, 0.5, 0.5}> { y = Mul(x, h) }");
  run(unknown, {rule});
  EXPECT_EQ(ops(unknown.graph()), Ops{"Mul"});
}

TEST(Rewrite, OptionalInputsAndAttributes) {
  const Pattern conv = op("Conv", {any("x"), constant("w"), optional(constant("b"))});
  const Rule rule = unary("conv", with(conv, "group", 1, 1), "Relu");
  for (const std::string inputs : {"x, w", "x, w, b"}) {
    Model m = model(
        "(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}, float[2] b = {1,2}> { y = Conv(" +
        inputs + ") }");
    run(m, {rule});
    EXPECT_EQ(ops(m.graph()), Ops{"Relu"}) << inputs;
  }
  Model grouped =
      model("(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,1,1,1] w = {1,2}> { y = Conv<group = 2>(x, w) }");
  const StepReport step = run(grouped, {rule});
  EXPECT_NE(step.misses.at(0).reason.find("attribute 'group'"), std::string::npos) << step.misses[0].reason;
}

TEST(Rewrite, WhatNoKernelTakesIsUndone) {
  Model m = model("(float[4] x) => (float[4] y) { y = Abs(x) }");
  const Attrs attrs = {{"activation", std::string("Nonsense")}, {"alpha", 0.0f}, {"beta", 0.0f}};
  const StepReport step = run(m, {unary("bad", op("Abs", {any("x")}), "modelflow.Activation", attrs)});
  EXPECT_EQ(ops(m.graph()), Ops{"Abs"});
  EXPECT_NE(step.misses.at(0).reason.find("no kernel takes modelflow.Activation"), std::string::npos);
  EXPECT_TRUE(step.hits.empty());
}

TEST(Rewrite, ConditionsAndRefusals) {
  Rule rule = unary("abs", op("Abs", {any("x")}), "Relu");
  rule.when = {
      [](const Match& m) { return m["x"]->shape().rank() == 1 ? yes() : no("wants a vector", m["x"]->name()); }};
  Model m = model("(float[4,4] x) => (float[4,4] y) { y = Abs(x) }");
  EXPECT_EQ(run(m, {rule}).misses.at(0).reason, "'x': wants a vector");
  rule.when = {};
  rule.into = [](const Match&, Build& b) { return b.refuse(no("not today")); };
  EXPECT_EQ(run(m, {rule}).misses.at(0).reason, "not today");
  EXPECT_EQ(ops(m.graph()), Ops{"Abs"});
}

TEST(Rewrite, ToAnInputThroughAnIdentityOnce) {
  const Rule rule = {.name = "drop",
                     .doc = "",
                     .from = op_any({"Dropout", "Identity"}, {any("x")}),
                     .when = {},
                     .into = [](const Match& m, Build&) { return std::vector<Value*>{m["x"]}; }};
  Model m = model("(float[4] x) => (float[4] y) { a = Identity(x) b = Identity(a) y = Dropout(b) }");
  run(m, {rule});
  EXPECT_EQ(ops(m.graph()), Ops{"Identity"});
  EXPECT_TRUE(run(m, {rule}).hits.empty());
}

TEST(Rewrite, ReachesIntoSubgraphs) {
  Model m = model(
      "(bool c, float[4] x) => (float[4] y) { y = If (c) <"
      "then_branch = t () => (float[4] a) { n = Neg(x) a = Neg(n) }, else_branch = e () => (float[4] b) { b = Abs(x) "
      "}> }");
  const StepReport step = run(m, {unary("neg-neg", op("Neg", {op("Neg", {any("x")})}), "Relu")});
  EXPECT_EQ(step.hits.at("neg-neg"), 1);
  EXPECT_EQ(ops(*m.graph().nodes().front()->subgraphs()[1]), Ops{"Relu"});
}

TEST(Rewrite, LargestPatternWins) {
  const Pattern x = any("x");
  Model m = model("(float[4] x) => (float[4] y) { a = Neg(x) b = Abs(a) y = Exp(b) }");
  run(m, {unary("small", op("Abs", {op("Neg", {x})}), "Relu"),
          unary("large", op("Exp", {op("Abs", {op("Neg", {x})})}), "Tanh")});
  EXPECT_EQ(ops(m.graph()), Ops{"Tanh"});
}

TEST(Rewrite, LongChainsAreQuick) {
  Model m;
  m.opsets[""] = 20;
  Graph& graph = m.graph();
  Value* last = &graph.add_input("x", Type::tensor(DType::f32, Shape::of({4})));
  for (int i = 0; i < 20000; ++i) last = graph.add(i % 2 ? "Neg" : "Abs", {last}).output();
  graph.add_output(*last);
  const StepReport step = run(m, {unary("pair", op("Neg", {op("Abs", {any("x")})}), "Relu")});
  EXPECT_EQ(step.hits.at("pair"), 10000);
  EXPECT_EQ(graph.nodes().size(), 10000u);
}

}  // namespace
}  // namespace modelflow
