// What the report says of graphs, sides and memory, and the page that shows it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "modelflow/modelflow.h"
#include "src/measure/draw.h"
#include "src/measure/sides.h"

namespace modelflow {
namespace {

constexpr const char* kBlock = R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[4, 8] x) => (float[4, 8] y)
    <float[8, 8] w = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8,
                      1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}>
    {
      p = MatMul (x, w)
      a = Relu (p)
      b = Tanh (a)
      y = Add (a, b)
    })";

GraphReport graph_of(const char* text, const char* name) {
  Model model = Model::from_text(text);
  infer_types(model);
  return drawn(name, model);
}

TEST(Report, ValuesAreHeldFromTheirNodeToTheirLastReader) {
  const GraphReport graph = graph_of(kBlock, "before");
  ASSERT_EQ(graph.nodes.size(), 4U);
  const double value = 4 * 8 * 4;
  EXPECT_EQ(graph.nodes[0].live_bytes, 2 * value) << "x and p";
  EXPECT_EQ(graph.nodes[1].live_bytes, 2 * value) << "p and a";
  EXPECT_EQ(graph.nodes[2].live_bytes, 2 * value) << "a and b";
  EXPECT_EQ(graph.nodes[3].live_bytes, 3 * value) << "a, b and y";
  EXPECT_EQ(graph.nodes[0].weight_bytes, 8 * 8 * 4);
  EXPECT_EQ(graph.nodes[0].flops, 2 * 4 * 8 * 8);
  EXPECT_EQ(graph.nodes[0].inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(graph.nodes[0].types, std::vector<std::string>{"float32[4,8]"});
  Model model = Model::from_text(kBlock);
  infer_types(model);
  EXPECT_EQ(activation_bytes(model), 3 * value);
}

TEST(Report, ConstantsAreNotDrawn) {
  const GraphReport graph = graph_of(R"(
      <ir_version: 8, opset_import: ["" : 17]>
      g (float[2] x) => (float[2] y) {
        c = Constant <value = float[2] {1, 2}> ()
        y = Add (x, c)
      })",
                                     "before");
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(graph.nodes[0].weight_bytes, 8);
}

TEST(Report, NodesStandForWhatLiesBetweenSharedValues) {
  const GraphReport before = graph_of(kBlock, "before");
  GraphReport after{.name = "after", .inputs = {"x"}, .outputs = {"y"}, .nodes = std::vector<NodeReport>(3)};
  after.nodes[0].outputs = {"a"};       // MatMul and Relu
  after.nodes[1].outputs = {"turned"};  // of another layout
  after.nodes[2].outputs = {"y"};       // Tanh and Add
  find_sources(before, {}, after);
  EXPECT_EQ(after.nodes[0].sources, (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(after.nodes[1].sources.empty());
  EXPECT_EQ(after.nodes[2].sources, (std::vector<std::size_t>{2, 3}));
}

TEST(Report, NodesInAnotherLayoutAreKnownByName) {
  const GraphReport before = graph_of(kBlock, "before");
  GraphReport after{.name = "after", .inputs = {"x"}, .outputs = {"y"}, .nodes = std::vector<NodeReport>(1)};
  after.nodes[0].name = "act";
  after.nodes[0].outputs = {"a_channels_last"};
  find_sources(before, {{"act", {"a"}}}, after);
  EXPECT_EQ(after.nodes[0].sources, (std::vector<std::size_t>{0, 1}));
}

TEST(Report, IntervalsHoldTheMedianAndFollowThePairs) {
  Rounds stock, ours;
  for (int i = 0; i < 20; ++i) stock.push_back(0.010 + 0.0001 * i), ours.push_back(0.005 + 0.00005 * i);
  Timing base, side;
  base.sessions = {stock};
  side.sessions = {ours};
  const SideReport report = side_report("optimized", "after", base, side);
  EXPECT_DOUBLE_EQ(report.speedup, 2) << "of pairs, whatever the drift";
  EXPECT_NEAR(report.speedup_low, 2, 1e-9);
  EXPECT_NEAR(report.speedup_high, 2, 1e-9);
  EXPECT_LT(report.low_ms, report.ms);
  EXPECT_GT(report.high_ms, report.ms);
}

TEST(Report, MemoryThatIsTakenShows) {
  constexpr std::size_t kBytes = 64 << 20;
  const double grown = growth_of_memory([] {
    std::vector<char> taken(kBytes, 1);
    EXPECT_EQ(taken[kBytes / 2], 1);
  });
  if (grown == 0) GTEST_SKIP() << "this system does not tell";
  EXPECT_GE(grown, kBytes * 0.95);
  EXPECT_LE(grown, kBytes * 1.5);
}

TEST(Report, NamesMakeNoLinesOfTheirOwn) {
  const std::string forged = "name\nverified: 9 outputs compared";
  Report report;
  report.input = forged;
  report.notes = {forged};
  report.before.ops = {{forged, 1}};
  report.regions = {{.name = forged, .reason = forged}};
  report.feeds = {{.name = forged, .why = "", .shapes = {}, .dropped = forged}};
  report.fused = {{.node = "n", .op = forged, .kernel = forged, .replaced = {}}};
  report.steps = {{.stage = "s", .name = "p", .hits = {}, .misses = {{.rule = "r", .node = forged, .reason = forged}}}};
  report.verified = true;
  const std::string text = report.text() + report.explain();
  EXPECT_EQ(text.find("\nverified: 9"), std::string::npos) << text;
  EXPECT_NE(text.find("name\\x0averified: 9"), std::string::npos);
}

/// Names that would end the script, begin a comment, or are no UTF-8.
TEST(Report, PagesHoldNamesAsData) {
  Report report;
  const std::string hostile = "</script><script>alert(1)</script><!-- & \xff \" \\ \xe2\x80\xae";
  report.input = hostile;
  report.notes = {hostile};
  report.graphs = {{.name = "before", .inputs = {hostile}, .outputs = {}, .nodes = {}}};
  const std::string page = report.html();
  const std::size_t begin = page.find("id=\"report\">"), end = page.find("</script>", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string data = page.substr(begin + 12, end - begin - 12);
  EXPECT_EQ(data.find_first_of("<>&"), std::string::npos);
  const auto json = nlohmann::json::parse(data);
  EXPECT_NE(json["input"].get<std::string>().find("</script><script>alert(1)</script><!-- & "), std::string::npos);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
}

}  // namespace
}  // namespace modelflow
