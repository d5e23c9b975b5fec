// Selection with made-up clocks, regions, cuts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/input_shape.h"
#include "src/measure/describe.h"
#include "src/measure/extract.h"
#include "src/measure/regions.h"
#include "src/measure/select.h"
#include "src/measure/timing.h"

namespace modelflow {
namespace {

TEST(Timing, RatiosOfNeighbours) {
  double drift = 1;  // the machine gets slower all the time; the ratio stays
  const auto side = [&](double seconds) { return [&, seconds] { return seconds * (drift *= 1.001); }; };
  const std::vector<Timing> timings = time_interleaved({side(0.02), side(0.01)}, {});
  EXPECT_NEAR(timings[0].speedup, 1, 1e-9);
  EXPECT_NEAR(timings[1].speedup, 2, 0.05);
  EXPECT_LE(timings[1].low, timings[1].speedup);
  EXPECT_GE(timings[1].high, timings[1].speedup);
}

/// relu_{n-1}(... relu_0(x)): standard ops, one "fused" Activation per entry of `fused`.
Model chain(std::size_t length) {
  Model model;
  model.opsets[""] = 17;
  model.opsets[std::string(kDomain)] = 1;
  Value* value = &model.graph().add_input("x", Type::tensor(DType::f32, Shape::of({1, 4})));
  for (std::size_t i = 0; i < length; ++i) {
    Node& node = model.graph().add("Relu", {value}, {.attrs = {}, .name = "relu" + std::to_string(i)});
    value = node.output();
    value->type = Type::tensor(DType::f32, Shape::of({1, 4}));
  }
  model.graph().rename(*value, "y");
  model.graph().add_output(*value);
  return model;
}

TEST(Timing, RunsThatTakeMemoryAreNotCounted) {
  const auto side = [](double seconds) {
    return [seconds, runs = 0]() mutable { return ++runs <= 2 ? 10 * seconds : seconds; };
  };
  for (const double seconds : {0.01, 0.1}) {  // several runs in a round, and one
    const std::vector<Timing> timings = time_interleaved({side(2 * seconds), side(seconds)}, {});
    for (const double round : timings[0].sessions.at(0)) EXPECT_EQ(round, 2 * seconds);
    EXPECT_EQ(timings[1].low, 2);
    EXPECT_EQ(timings[1].high, 2);
  }
}

TEST(Extract, KeepsNamesAtTheBorder) {
  const Model model = chain(4);
  std::vector<const Node*> nodes;
  for (const auto& node : model.graph().nodes()) nodes.push_back(node.get());
  const Model part = extract(model, {nodes[1], nodes[2]});
  ASSERT_EQ(part.graph().inputs().size(), 1U);
  EXPECT_EQ(part.graph().inputs()[0]->name(), nodes[1]->input(0)->name());
  EXPECT_EQ(part.graph().outputs()[0]->name(), nodes[2]->output()->name());
  const auto cut = slice(model, {nodes[1]->input(0)->name()}, {nodes[2]->output()->name()});
  EXPECT_EQ(cut, (std::vector<const Node*>{nodes[1], nodes[2]}));
  EXPECT_TRUE(slice(model, {nodes[2]->input(0)->name()}, {nodes[1]->output()->name()}).empty());
}

TEST(Extract, BringsTheFunctionsThatAreCalled) {
  const Model model =
      Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17, "l" : 1]> g (float[3] x) => (float[3] y)
    { a = l.outer (x) b = Neg (a) y = l.other (b) }
    <domain: "l", opset_import: ["" : 17, "l" : 1]> outer (v) => (w) { w = l.inner (v) }
    <domain: "l", opset_import: ["" : 17]> inner (v) => (w) { w = Exp (v) }
    <domain: "l", opset_import: ["" : 17]> other (v) => (w) { w = Abs (v) })");
  const auto& nodes = model.graph().nodes();
  const Model part = extract(model, {nodes.front().get()});
  std::vector<std::string> names;
  for (const Function& function : part.functions) names.push_back(function.name);
  EXPECT_EQ(names, (std::vector<std::string>{"outer", "inner"}));
}

TEST(Revert, ResidualsComeBackAsTheyWere) {
  Model model = Model::from_text(R"(<ir_version: 8, opset_import: ["" : 17, "modelflow" : 1]>
    g (float[2,3] x, float[2,4] r) => (float[2,4] y, float[2,4] z, float[2,4] s)
    <float[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float[4] g = {1, 1, 1, 1}> {
      a = modelflow.MatMul <residual = "before"> (x, w, r)
      y = Relu (a)
      b = modelflow.MatMul <residual = "before"> (x, w, r)
      z = LayerNormalization (b, g)
      x0 = Neg (r)
      s = Sum (x0, r)
    })");
  std::vector<std::string> names;
  name_fused_nodes(model);
  for (const Node* node : fused_nodes(model.graph())) names.push_back(node->name);
  revert(model, names);
  const auto reads = [&](const char* op, const char* by) {
    const auto& nodes = model.graph().nodes();
    return std::ranges::any_of(nodes, [&](const auto& node) {
      return node->is(by) && node->input(0)->producer() && node->input(0)->producer()->is(op);
    });
  };
  EXPECT_TRUE(reads("Add", "Relu"));
  EXPECT_TRUE(reads("Sum", "LayerNormalization"));
  const Node* own = model.graph().outputs()[2]->producer();
  EXPECT_TRUE(own->is("Sum"));
}

constexpr const char* kOpenProduct = R"(
    <ir_version: 8, opset_import: ["" : 17, "modelflow" : 1]>
    g (float[batch, tokens, 64] x, float[64, 32] w, float[7, 1, 16] s, float[1, 32, 16] a, float[1, 32, 8] r)
        => (float[batch, tokens, 32] y, float[7, 1, 1, 8] h) {
      y = MatMul (x, w)
      h = LSTM <hidden_size = 8> (s, a, r)
    })";

TEST(Stats, CountWhatRuns) {
  const Model model = Model::from_text(kOpenProduct);
  const double steps = 2.0 * 7 * (32 * 16 + 32 * 8);
  EXPECT_EQ(stats(model).flops, 2 * 64 * 32 + steps) << "what is open counts as 1";
  const auto flops_at = [](const Model& given, const std::map<std::string, Dims>& inputs) {
    return typed_stats(for_input_shapes(given, inputs)).flops;
  };
  EXPECT_EQ(flops_at(model, {{"x", {3, 50, 64}}}), 2.0 * 3 * 50 * 64 * 32 + steps);
  EXPECT_EQ(flops_at(model, {{"x", {3, 50, 65}}}), 2 * 64 * 32 + steps) << "what the model cannot have is left out";
}

TEST(Stats, TheReportCountsTheInputsThatAreGiven) {
  Options options;
  options.measure = options.verify = false;
  options.level = Level::O1;
  options.input_shapes = {{"x", {2, 100, 64}}};
  const Report report = optimize(Model::from_text(kOpenProduct), options).report;
  EXPECT_EQ(report.before.flops, 2.0 * 2 * 100 * 64 * 32 + 2.0 * 7 * (32 * 16 + 32 * 8));
  EXPECT_EQ(report.after.flops, report.before.flops);
}

TEST(Select, CostsAreThoseOfTypicalInputs) {
  const auto decided = [](std::int64_t side) {
    Model fused = Model::from_text(R"(
        <ir_version: 8, opset_import: ["" : 17, "modelflow" : 1]>
        g (float[n, c] x) => (float[n, c] y) { y = modelflow.Activation <activation = "Relu"> (x) })");
    name_fused_nodes(fused);
    SelectTools tools;
    tools.lay_out = tools.emit = [](Model model) { return model; };
    tools.typical = {{"x", {side, side}}};
    Report report;
    select_by_cost(fused, fused, tools, Target::parse("cpu:avx2"), report);
    return report.regions.at(0);
  };
  EXPECT_NEAR(decided(512).fused_seconds / decided(256).fused_seconds, 4, 0.1);
  EXPECT_EQ(decided(512).reason.find("not predicted"), std::string::npos);
}

/// On a GPU steps follow one another as launches, in the standard op as well: a layer is no single product.
TEST(Select, RecurrentLayersOfAGpuCountTheirSteps) {
  const auto decided = [](std::int64_t steps) {
    Model fused = Model::from_text(R"(
        <ir_version: 8, opset_import: ["" : 17, "modelflow" : 1]>
        g (float[s, 1, 300] x, float[1, 900, 300] w, float[1, 900, 300] r) => (float[s, 1, 1, 300] y) {
          y = modelflow.GRU <hidden_size = 300, linear_before_reset = 1> (x, w, r)
        })");
    name_fused_nodes(fused);
    SelectTools tools;
    tools.lay_out = tools.emit = [](Model model) { return model; };
    tools.typical = {{"x", {steps, 1, 300}}};
    Report report;
    select_by_cost(fused, fused, tools, Target::parse("cuda:sm_90"), report);
    return report.regions.at(0);
  };
  const double launch = Target::parse("cuda:sm_90").launch;
  EXPECT_TRUE(decided(10).kept && decided(1000).kept);
  EXPECT_GT(decided(1000).stock_seconds, 2000 * launch);
  EXPECT_GT(decided(1000).fused_seconds, 1000 * launch);
}

/// On a GPU what gathers data is a launch, and what is computed of extents is none: the body of ChannelAttention has
/// five Transposes, two products, a scale and a softmax around those.
TEST(Select, LaunchesOfAGpuAreThoseThatMoveData) {
  const auto launches = [](const char* text) {
    Model fused =
        Model::from_text(std::string(R"(<ir_version: 8, opset_import: ["" : 17, "modelflow" : 1]> g )") + text);
    name_fused_nodes(fused);
    SelectTools tools;
    tools.lay_out = tools.emit = [](Model model) { return model; };
    Report report;
    const Target target = Target::parse("cuda:sm_90");
    select_by_cost(fused, fused, tools, target, report);
    return std::floor(report.regions.at(0).stock_seconds / target.launch);
  };
  EXPECT_EQ(launches(R"((int64[1, 2] ids, float[9, 4] a, float[9, 4] b) => (float[1, 8] y) {
    y = modelflow.ColumnEmbedding <columns = [0, 1]> (ids, a, b) })"),
            5);
  EXPECT_EQ(launches(R"((float[1, 4, 6] q, float[1, 4, 6] k, float[1, 4, 6] v) => (float[1, 4, 6] y) {
    y = modelflow.ChannelAttention <num_heads = 2> (q, k, v) })"),
            9);
}

SelectTools tools_with(std::vector<double> speedups, std::size_t& asked) {
  SelectTools tools;
  tools.lay_out = [](Model model) { return model; };
  tools.emit = [](Model model) { return model; };
  tools.time = [speedups, &asked](const std::vector<const Model*>&, double) {
    const double s = speedups.at(asked++);
    return std::vector<Timing>{{1, 1, 1, 1, {}, {{1, 1, 1}}},
                               {1 / s, s, s * 0.99, s * 1.01, {}, {{1 / s, 1 / s, 1 / s}}}};
  };
  return tools;
}

TEST(Regions, AnImageEndsWhereItIsFlattened) {
  Model model = Model::from_text(R"(
      <ir_version: 8, opset_import: ["" : 17, "modelflow" : 1]>
      g (float[1, 4, 4, 3] x, float[8, 3, 1, 1] w, float[8, 8] v) => (float[1, 16, 8] y) {
        a = modelflow.Conv <x_layout = "NHWC", y_layout = "NHWC"> (x, w) b = Relu (a)
        c = modelflow.Conv <x_layout = "NHWC", y_layout = "NHWC"> (b, w)
        shape = Constant <value = int64[3] {1, 16, 8}> ()
        d = Reshape (c, shape) best, at = TopK (d, shape) e = modelflow.Gemm (best, v) y = modelflow.Gemm (best, v)
      })");
  name_fused_nodes(model);
  const std::vector<Region> regions = find_regions(model);
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].fused.size(), 2U) << "convolutions and what is between them";
  EXPECT_EQ(regions[0].nodes.size(), 4U) << "with the Reshape that reads them";
  EXPECT_EQ(regions[1].copies, 2) << "products behind TopK";
}

/// Stock and another side in one session.
std::vector<Timing> one_session(const Rounds& speedups) {
  std::vector<Timing> timings(2);
  for (Timing& timing : timings) timing.sessions.resize(1);
  for (std::size_t i = 0; i < speedups.size(); ++i) {
    const double stock = 1 + static_cast<double>(i % 3) * 0.1;
    timings[0].sessions[0].push_back(stock);
    timings[1].sessions[0].push_back(stock / speedups[i]);
  }
  return timings;
}

TEST(Timing, SessionsOfTwoTimingsCountTogether) {
  const auto timed = [](double speedup) { return one_session(Rounds(8, speedup)); };
  const std::vector<Timing> both = joined(timed(2), timed(2));
  EXPECT_EQ(both[1].sessions.size(), 2U);
  EXPECT_NEAR(both[1].speedup, 2, 1e-9);
  const std::vector<Timing> unlike = joined(timed(1), timed(1.2));
  EXPECT_NEAR(unlike[1].low, 1, 1e-9);
  EXPECT_NEAR(unlike[1].high, 1.2, 1e-9);
}

TEST(Timing, WhatSessionsDisagreeOnIsNotSure) {
  const auto width = [](const std::vector<Timing>& timings) { return timings[1].high - timings[1].low; };
  Rounds mixed;
  for (const double speedup : {0.9, 1.0, 1.1, 1.2}) mixed.insert(mixed.end(), 12, speedup);
  std::vector<Timing> apart = one_session(Rounds(12, 0.9));
  for (const double speedup : {1.0, 1.1, 1.2}) apart = joined(apart, one_session(Rounds(12, speedup)));
  EXPECT_GT(width(apart), 1.5 * width(one_session(mixed))) << "the same rounds";
  EXPECT_LT(apart[1].low, 1.0);
}

TEST(Select, TimeIsSpentOnHopeAlone) {
  const Model original = chain(3), portable = chain(2);
  const auto asked_with = [&](double speedup, double low, double high) {
    std::size_t asked = 0;
    SelectTools tools = tools_with({}, asked);
    tools.time = [&](const std::vector<const Model*>&, double) {
      const double session = 1 / std::vector{speedup, high, low}[asked++ % 3];  // which differ
      std::vector<Timing> timings(2);
      timings[0].sessions = {{1, 1, 1, 1}};
      timings[1] = {1 / speedup, speedup, low, high, {}, {{session, session, session, session}}};
      return timings;
    };
    Report report;
    select({original, portable, portable}, tools, report);
    return asked;
  };
  EXPECT_EQ(asked_with(0.95, 0.8, 1.1), 1U);  // more than half of the rounds are slower
  EXPECT_EQ(asked_with(1.0, 0.99, 1.02), 1U);
  EXPECT_GT(asked_with(1.02, 0.9, 1.1), 2U);
  EXPECT_LT(asked_with(1.02, 0.9, 1.1), 8U);
}

TEST(Select, KeepsWhatIsFaster) {
  const Model original = chain(3), portable = chain(2);
  std::size_t asked = 0;
  Report report;
  const Selected chosen = select({original, portable, portable}, tools_with({1.5, 1.4}, asked), report);
  EXPECT_EQ(chosen.model.graph().nodes().size(), 2U);
  EXPECT_DOUBLE_EQ(report.speedup, 1.5);  // the median of the rounds of both times
  EXPECT_DOUBLE_EQ(report.stock_ms, 1000);
}

TEST(Select, ClearWinsOfLargeModelsAreTimedOnce) {
  const Model original = chain(3), portable = chain(2);
  const auto asked_with = [&](double weight_bytes) {
    std::size_t asked = 0;
    Report report;
    report.before.weight_bytes = weight_bytes;
    EXPECT_FALSE(select({original, portable, portable}, tools_with({1.5, 1.5}, asked), report).original);
    return asked;
  };
  EXPECT_EQ(asked_with(1e6), 2U);
  EXPECT_EQ(asked_with(1e9), 1U);
}

TEST(Select, DoesNotTrustLuck) {
  const Model original = chain(3), portable = chain(2);
  std::size_t asked = 0;
  Report report;
  const Selected chosen = select({original, portable, portable}, tools_with({1.5, 0.99, 0.99, 0.99}, asked), report);
  EXPECT_EQ(chosen.model.graph().nodes().size(), 3U);
  EXPECT_DOUBLE_EQ(report.speedup, 1);
}

TEST(Select, GoesBackToTheOriginal) {
  const Model original = chain(3), portable = chain(2);
  std::size_t asked = 0;
  Report report;
  const Selected chosen = select({original, portable, portable}, tools_with({0.9}, asked), report);
  EXPECT_EQ(chosen.model.graph().nodes().size(), 3U);
  EXPECT_DOUBLE_EQ(report.speedup, 1);
  EXPECT_FALSE(report.notes.empty());
}

TEST(Select, StandardOpsWhereTheFusedOnesLoseToTheirOwnBodies) {
  const Model original = chain(3);
  const Model portable = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[n, c] x) => (float[n, c] y) { t = Relu (x) y = Sqrt (t) }");
  Model fused = Model::from_text(R"(
      <ir_version: 8, opset_import: ["" : 17, "modelflow" : 1]>
      g (float[n, c] x) => (float[n, c] y) { y = modelflow.Activation <activation = "Relu"> (x) })");
  name_fused_nodes(fused);
  std::size_t asked = 0;
  SelectTools tools = tools_with({}, asked);
  tools.time = [](const std::vector<const Model*>& models, double) {
    std::vector<Timing> timings;
    for (const Model* model : models) {  // stock, the form in question, its fallback
      const bool is_fused = model->opsets.contains(std::string(kDomain)) && timings.size() == 1;
      const double s = is_fused ? 1.5 : timings.empty() ? 1 : 2;
      timings.push_back({1 / s, s, s * 0.99, s * 1.01, {}, {{1 / s, 1 / s, 1 / s}}});
    }
    return timings;
  };
  Report report;
  const Selected chosen = select({.original = original, .portable = portable, .fused = fused}, tools, report);
  EXPECT_EQ(chosen.model.graph().nodes().size(), 2U);
  EXPECT_DOUBLE_EQ(report.speedup, 2);
}

}  // namespace
}  // namespace modelflow
